// Runs mpi-operator's controller, as its own command does with leader election left out: that command listens on a fixed
// port, of which a machine with several clusters has only one. Called by e2e/operators.py:
//
//	mpi-operator KUBECONFIG
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	"github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
)

// Requests a second; the command's own 5 would be what every test waits for.
const qps, burst = 500, 1000

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.UserAgent = qps, burst, "mpi-operator"
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	jobs, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := scheme.AddToScheme(kubescheme.Scheme); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ours := kubeinformers.NewSharedInformerFactory(core, 0)
	theirs := externalversions.NewSharedInformerFactory(jobs, 0)
	chosen := &options.ServerOption{Threadiness: 2, ControllerRateLimit: 100, ControllerBurst: 1000}
	running, err := controller.NewMPIJobController(
		ctx, core, jobs, nil, nil,
		ours.Core().V1().ConfigMaps(),
		ours.Core().V1().Secrets(),
		ours.Core().V1().Services(),
		ours.Batch().V1().Jobs(),
		ours.Core().V1().Pods(),
		ours.Scheduling().V1().PriorityClasses(),
		theirs.Kubeflow().V2beta1().MPIJobs(),
		chosen)
	if err != nil {
		return err
	}
	ours.Start(ctx.Done())
	theirs.Start(ctx.Done())
	return running.Run(chosen.Threadiness, ctx.Done())
}
