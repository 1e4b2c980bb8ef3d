// Runs the Trainer's controllers and webhooks of TrainJobs and their runtimes, as its own command does with leader election
// left out: that command reads its certificates from a fixed directory. Called by e2e/operators.py:
//
//	trainer-controller KUBECONFIG PORT CERTIFICATES
package main

import (
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	configapi "github.com/kubeflow/trainer/v2/pkg/apis/config/v1alpha1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	controllers "github.com/kubeflow/trainer/v2/pkg/controller"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"github.com/kubeflow/trainer/v2/pkg/webhooks"
)

// Requests a second; the command's own 50 would be what every test waits for.
const qps, burst = 500, 1000

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, port, certificates string) error {
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client.QPS, client.Burst, client.UserAgent = qps, burst, "trainer-controller"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, configapi.AddToScheme, trainer.AddToScheme,
		jobset.AddToScheme, schedulerplugins.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	settings := configapi.Configuration{}
	scheme.Default(&settings)
	manager, err := ctrl.NewManager(client, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: certificates}),
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	runtimes, err := core.New(ctx, manager.GetClient(), manager.GetFieldIndexer(), &settings)
	if err != nil {
		return err
	}
	if name, err := controllers.SetupControllers(manager, runtimes, controller.Options{}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if name, err := webhooks.Setup(manager, runtimes); err != nil {
		return fmt.Errorf("webhook of %s: %w", name, err)
	}
	return manager.Start(ctx)
}
