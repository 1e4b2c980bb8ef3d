// Our Job controller, a process, where the suite expects one within its own: started, ended, started anew when a feature
// gate changes. Its metrics are read in metrics_test.go; slow_test.go delays what it sees.

package job

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2/ktesting"
	jobcontroller "k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/features"
)

const (
	readyTimeout = time.Minute
	endTimeout   = 20 * time.Second
)

// Said by the environment: our command, where logs and notes for the keeper go, and whether it is ended by SIGKILL.
var (
	command    = os.Getenv("MIRROR_SUITE_COMMAND")
	directory  = os.Getenv("MIRROR_SUITE_DIRECTORY")
	isKilled   = os.Getenv("MIRROR_SUITE_KILLS") == "true"
	knownGates = []featuregate.Feature{
		features.JobManagedBy,
		features.JobPodReplacementPolicy,
		features.JobSuccessPolicy,
		features.JobBackoffLimitPerIndex,
		features.MutableSchedulingDirectivesForSuspendedJobs,
		features.MutablePodResourcesForSuspendedJobs,
		features.GenericWorkload,
		features.WorkloadWithJob,
	}
	probes = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
)

// running are the processes that were started and not told to end.
var running = struct {
	sync.Mutex
	started int
	now     map[*process]bool
}{now: map[*process]bool{}}

type process struct {
	tb      testing.TB
	config  *restclient.Config
	gates   string
	address string
	log     string
	command *exec.Cmd
	ended   chan error
	slow    *slowServer
	stop    func()
}

// Run is called by a test that starts its controller by itself; ours works already.
func (p *process) Run(context.Context, int) {}

func startJobControllerAndWaitForCaches(tb testing.TB, config *restclient.Config, options ...informers.SharedInformerOption) (context.Context, context.CancelFunc) {
	tb.Helper()
	isSlow := len(options) > 0 // the suite has one option: a transformation that takes its time
	_, ctx, cancel := startProcess(tb, config, isSlow)
	return ctx, cancel
}

func createJobControllerWithSharedInformers(tb testing.TB, config *restclient.Config, _ informers.SharedInformerFactory) (*process, context.Context, context.CancelFunc) {
	tb.Helper()
	return startProcess(tb, config, false)
}

// setGateDuringTest is what it replaces, and starts those anew that run with another value.
func setGateDuringTest(tb testing.TB, gate featuregate.FeatureGate, name featuregate.Feature, value bool) {
	tb.Helper()
	featuregatetesting.SetFeatureGateDuringTest(tb, gate, name, value)
	for _, p := range runningNow() {
		if p.gates != gatesNow() {
			p.end()
			p.start()
		}
	}
}

func startProcess(tb testing.TB, config *restclient.Config, isSlow bool) (*process, context.Context, context.CancelFunc) {
	tb.Helper()
	_, ctx := ktesting.NewTestContext(tb)
	ctx, cancel := context.WithCancel(ctx)
	p := &process{tb: tb, config: restclient.CopyConfig(config)}
	if isSlow {
		p.slow = startSlowServer(tb, p.config)
	}
	p.start()
	p.stop = sync.OnceFunc(func() {
		p.end()
		if p.slow != nil {
			p.slow.close()
		}
	})
	return p, ctx, func() {
		cancel()
		p.stop()
	}
}

// start returns when the process is ready: its caches are full.
func (p *process) start() {
	p.tb.Helper()
	p.gates = gatesNow()
	p.address = freeAddress(p.tb)
	running.Lock()
	running.started++
	base := filepath.Join(directory, fmt.Sprintf("%s-%d", strings.ReplaceAll(p.tb.Name(), "/", "-"), running.started))
	running.Unlock()
	p.log = base + ".log"
	kubeconfig := base + ".kubeconfig"
	if err := os.WriteFile(kubeconfig, []byte(p.kubeconfig()), 0o600); err != nil {
		p.tb.Fatal(err)
	}
	out, err := os.Create(p.log)
	if err != nil {
		p.tb.Fatal(err)
	}
	defer out.Close()
	p.command = exec.Command(command, "job-controller", "--no-leader-election",
		"--kubeconfig", kubeconfig, "--listen", p.address, "--feature-gates", p.gates,
		"--qps", fmt.Sprint(p.config.QPS), "--burst", fmt.Sprint(p.config.Burst))
	p.command.Env = append(os.Environ(), constantsNow()...)
	p.command.Stdout, p.command.Stderr = out, out
	if err := p.command.Start(); err != nil {
		p.tb.Fatal(err)
	}
	noteForKeeper(base, p.command.Process.Pid)
	p.ended = make(chan error, 1)
	go func(command *exec.Cmd, ended chan<- error) { ended <- command.Wait() }(p.command, p.ended)
	p.waitUntilReady()
	running.Lock()
	running.now[p] = true
	running.Unlock()
}

func (p *process) waitUntilReady() {
	p.tb.Helper()
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-p.ended:
			p.tb.Fatalf("our controller ended at once: %v\n%s", err, p.words())
		default:
		}
		answer, err := probes.Get("http://" + p.address + "/readyz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	p.tb.Fatalf("our controller is not ready after %v:\n%s", readyTimeout, p.words())
}

// end returns when the process is gone. What it has counted is kept.
func (p *process) end() {
	running.Lock()
	delete(running.now, p)
	running.Unlock()
	if err := keepCounts(p); err != nil {
		p.tb.Errorf("our controller does not say what it has counted: %v\n%s", err, p.words())
	}
	signal := syscall.SIGTERM
	if isKilled {
		signal = syscall.SIGKILL
	}
	p.command.Process.Signal(signal)
	select {
	case err := <-p.ended:
		if err != nil && !isKilled {
			p.tb.Errorf("our controller ended badly: %v\n%s", err, p.words())
		}
	case <-time.After(endTimeout):
		p.tb.Errorf("our controller goes on after SIGTERM:\n%s", p.words())
		p.command.Process.Kill()
		<-p.ended
	}
	if bytes.Contains(p.words(), []byte("Traceback (most recent call last)")) {
		p.tb.Errorf("a traceback:\n%s", p.words())
	}
}

func (p *process) words() []byte {
	text, _ := os.ReadFile(p.log)
	return text
}

func (p *process) kubeconfig() string {
	cluster := "server: https://" + strings.TrimPrefix(p.config.Host, "https://")
	cluster += ", certificate-authority-data: " + base64.StdEncoding.EncodeToString(p.config.CAData)
	if p.config.ServerName != "" {
		cluster += ", tls-server-name: " + p.config.ServerName
	}
	if p.slow != nil {
		cluster = "server: " + p.slow.url()
	}
	return strings.Join([]string{
		"apiVersion: v1",
		"kind: Config",
		"current-context: suite",
		"contexts: [{name: suite, context: {cluster: suite, user: suite}}]",
		"clusters: [{name: suite, cluster: {" + cluster + "}}]",
		"users: [{name: suite, user: {token: " + strconv.Quote(p.config.BearerToken) + "}}]",
	}, "\n")
}

func runningNow() []*process {
	running.Lock()
	defer running.Unlock()
	var found []*process
	for p := range running.now {
		found = append(found, p)
	}
	return found
}

func gatesNow() string {
	var said []string
	for _, gate := range knownGates {
		said = append(said, fmt.Sprintf("%s=%v", gate, feature.DefaultFeatureGate.Enabled(gate)))
	}
	return strings.Join(said, ",")
}

func constantsNow() []string {
	said := []string{
		fmt.Sprintf("JOB_MAX_UNCOUNTED_PODS=%d", jobcontroller.MaxUncountedPods),
		fmt.Sprintf("JOB_MAX_POD_CREATE_DELETE_PER_SYNC=%d", jobcontroller.MaxPodCreateDeletePerSync),
	}
	for name, duration := range map[string]time.Duration{
		"JOB_BATCH_PERIOD_SECONDS":            jobcontroller.SyncJobBatchPeriod,
		"JOB_API_BACKOFF_SECONDS":             jobcontroller.DefaultJobApiBackOff,
		"JOB_API_BACKOFF_MAX_SECONDS":         jobcontroller.MaxJobApiBackOff,
		"JOB_POD_FAILURE_BACKOFF_SECONDS":     jobcontroller.DefaultJobPodFailureBackOff,
		"JOB_MAX_POD_FAILURE_BACKOFF_SECONDS": jobcontroller.MaxJobPodFailureBackOff,
	} {
		said = append(said, fmt.Sprintf("%s=%.3f", name, duration.Seconds()))
	}
	return said
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// noteForKeeper has e2e/controlplane/keeper.py end the process, should we die first.
func noteForKeeper(base string, pid int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return // not Linux
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	os.WriteFile(base+".pid", []byte(fmt.Sprintf("%d %s", pid, fields[19])), 0o600)
}
