// Renders a chart as `helm template` does, with Helm's own engine and nothing of its other parts, which would take the
// better part of two minutes to compile. Called by e2e/test_manifests.py:
//
//	helm-template CHART NAMESPACE <values.yaml >objects.yaml
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

func main() {
	if err := render(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder, namespace string) error {
	given, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	values, err := common.ReadValues(given)
	if err != nil {
		return err
	}
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	release := common.ReleaseOptions{Name: "jobmirror", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Printf("---\n%s\n", files[name])
		}
	}
	return nil
}
