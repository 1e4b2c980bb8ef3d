// Runs training-operator's controllers and webhooks of some kinds, without any named of PyTorchJobs, TFJobs, XGBoostJobs and
// PaddleJobs, as its own command does with leader election left out: that command listens on all addresses and makes
// certificates of its own. Called by e2e/operators.py:
//
//	training-operator KUBECONFIG PORT CERTIFICATES [KIND ...]
package main

import (
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
)

// Requests a second; the command's own 20 would be what every test waits for.
const qps, burst = 500, 1000

var kinds = []string{kubeflow.PyTorchJobKind, kubeflow.TFJobKind, kubeflow.XGBoostJobKind, kubeflow.PaddleJobKind}

func main() {
	ctrl.SetLogger(zap.New())
	if len(os.Args) > 4 {
		kinds = os.Args[4:]
	}
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
	client.QPS, client.Burst, client.UserAgent = qps, burst, "training-operator"
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := kubeflow.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(client, ctrl.Options{
		Scheme:        scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: certificates}),
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := controllers.SupportedSchemeReconciler[kind](manager, common.GenNonGangSchedulerSetupFunc(), 2); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if err := webhooks.SupportedSchemeWebhook[kind](manager); err != nil {
			return fmt.Errorf("webhook of %s: %w", kind, err)
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
