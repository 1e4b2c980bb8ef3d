// What our controllers have counted: those that run, by their /metrics, and those that have ended.

package job

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	basemetrics "k8s.io/component-base/metrics"
)

const subsystem = "job_controller_"

// The names of labels, in the order in which the suite gives their values.
var labelNames = map[string][]string{
	"jobs_finished_total":                          {"completion_mode", "result", "reason"},
	"jobs_by_external_controller_total":            {"controller_name"},
	"job_pods_finished_total":                      {"completion_mode", "result"},
	"pod_failures_handled_by_failure_policy_total": {"action"},
	"terminated_pods_tracking_finalizer_total":     {"event"},
	"job_finished_indexes_total":                   {"status", "backoffLimit"},
	"job_pods_creation_total":                      {"reason", "status"},
}

// counts are values by series: a name, and its labels in the order of their names.
type counts map[string]float64

var counted = struct {
	sync.Mutex
	byEnded counts
	atReset counts
}{byEnded: counts{}, atReset: counts{}}

var labelPattern = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

func resetMetrics() {
	now, err := countsNow()
	if err != nil {
		panic(err)
	}
	counted.Lock()
	defer counted.Unlock()
	counted.atReset = now
}

func validateCounterMetric(ctx context.Context, t *testing.T, metric *basemetrics.CounterVec, want metricLabelsWithValue) {
	t.Helper()
	names := labelNames[metric.Name]
	if len(names) != len(want.Labels) {
		t.Fatalf("what labels does %s have?", metric.Name)
	}
	var labels []string
	for i, name := range names {
		labels = append(labels, name+"="+want.Labels[i])
	}
	series := seriesOf(subsystem+metric.Name, labels)
	got := 0
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		now, err := countsNow()
		got = int(now[series] - counted.atReset[series])
		return err == nil && got == want.Value, err
	})
	if err != nil {
		t.Errorf("%s is %d, not %d: %v", series, got, want.Value, err)
	}
}

func keepCounts(p *process) error {
	last, err := countsOf(p)
	counted.Lock()
	defer counted.Unlock()
	add(counted.byEnded, last)
	return err
}

func countsNow() (counts, error) {
	sum := counts{}
	counted.Lock()
	add(sum, counted.byEnded)
	counted.Unlock()
	for _, p := range runningNow() {
		one, err := countsOf(p)
		if err != nil {
			return nil, err
		}
		add(sum, one)
	}
	return sum, nil
}

func countsOf(p *process) (counts, error) {
	answer, err := probes.Get("http://" + p.address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	found := counts{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), subsystem) {
			continue
		}
		end := strings.LastIndexByte(lines.Text(), ' ')
		value, err := strconv.ParseFloat(lines.Text()[end+1:], 64)
		if err != nil {
			return nil, err
		}
		name, rest, _ := strings.Cut(lines.Text()[:end], "{")
		var labels []string
		for _, label := range labelPattern.FindAllStringSubmatch(rest, -1) {
			labels = append(labels, label[1]+"="+label[2])
		}
		found[seriesOf(name, labels)] = value
	}
	return found, lines.Err()
}

func seriesOf(name string, labels []string) string {
	sort.Strings(labels)
	return fmt.Sprintf("%s{%s}", name, strings.Join(labels, ","))
}

func add(to, from counts) {
	for series, value := range from {
		to[series] += value
	}
}
