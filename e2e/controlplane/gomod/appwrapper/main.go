// Runs AppWrapper's controller and webhooks, as its own command does with leader election left out: that command listens on
// all addresses and makes certificates of its own. Called by e2e/operators.py:
//
//	appwrapper-controller KUBECONFIG PORT CERTIFICATES
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

	appwrapper "github.com/project-codeflare/appwrapper/api/v1beta2"
	"github.com/project-codeflare/appwrapper/pkg/config"
	"github.com/project-codeflare/appwrapper/pkg/controller"
)

// Requests a second; the command's own 20 would be what every test waits for.
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
	client.QPS, client.Burst, client.UserAgent = qps, burst, "appwrapper-controller"
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := appwrapper.AddToScheme(scheme); err != nil {
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
	settings := config.NewAppWrapperConfig()
	if err := controller.SetupWebhooks(manager, settings); err != nil {
		return err
	}
	if err := controller.SetupControllers(manager, settings); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
