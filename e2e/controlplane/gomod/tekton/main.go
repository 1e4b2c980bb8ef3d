// Runs Tekton's controllers of PipelineRuns and TaskRuns, and its webhooks of both, as its own two commands do with leader
// election, profiling and metrics left out: those listen on all addresses and make certificates of their own. Its ConfigMaps
// are in the namespace "default". Called by e2e/operators.py:
//
//	tekton-controller KUBECONFIG PORT CERTIFICATES
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	filteredinformerfactory "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	cminformer "knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/resourcesemantics"
	"knative.dev/pkg/webhook/resourcesemantics/defaulting"
	"knative.dev/pkg/webhook/resourcesemantics/validation"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/reconciler/pipelinerun"
	"github.com/tektoncd/pipeline/pkg/reconciler/resolutionrequest"
	"github.com/tektoncd/pipeline/pkg/reconciler/taskrun"
	"knative.dev/pkg/logging"
)

// Requests a second; the command's own 40 would be what every test waits for.
const qps, burst = 500, 1000

// Nobody pulls it: pods are simulated.
const image = "none"

// What people write; the webhooks of Pipelines, Tasks and older versions are not needed.
var types = map[schema.GroupVersionKind]resourcesemantics.GenericCRD{
	v1.SchemeGroupVersion.WithKind("PipelineRun"): &v1.PipelineRun{},
	v1.SchemeGroupVersion.WithKind("TaskRun"):     &v1.TaskRun{},
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, port, certificates string) error {
	if err := os.Setenv("SYSTEM_NAMESPACE", "default"); err != nil {
		return err
	}
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client.QPS, client.Burst, client.UserAgent = qps, burst, "tekton-controller"
	ctx := filteredinformerfactory.WithSelectors(signals.NewContext(), v1.ManagedByLabelKey)
	ctx = webhook.WithOptions(ctx, webhook.Options{SecretName: "none"})
	ctx, startInformers := injection.EnableInjectionOrDie(ctx, client)
	configMaps := cminformer.NewInformedWatcher(kubeclient.Get(ctx), "default")

	options := &pipeline.Options{Images: pipeline.Images{
		EntrypointImage: image, SidecarLogResultsImage: image, NopImage: image,
		ShellImage: image, ShellImageWin: image, WorkingDirInitImage: image,
	}}
	controllers := []*controller.Impl{
		taskrun.NewController(options, clock.RealClock{})(ctx, configMaps),
		pipelinerun.NewController(options, clock.RealClock{})(ctx, configMaps),
		resolutionrequest.NewController(clock.RealClock{})(ctx, configMaps),
	}
	store := config.NewStore(logging.FromContext(ctx))
	store.WatchConfigs(configMaps)
	routes := http.NewServeMux()
	// As controllers these two would keep registrations that name a Service: only what they answer is wanted.
	for _, admission := range []*controller.Impl{
		defaulting.NewAdmissionController(ctx, "defaulting", "/defaulting", types, store.ToContext, true),
		validation.NewAdmissionController(ctx, "validation", "/resource-validation", types, store.ToContext, true),
	} {
		answering := admission.Reconciler.(webhook.AdmissionController)
		routes.HandleFunc(answering.Path(), answer(ctx, answering))
	}
	if err := configMaps.Start(ctx.Done()); err != nil {
		return err
	}
	startInformers()

	served := make(chan error, 1)
	go func() {
		certificate, key := filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key")
		served <- http.ListenAndServeTLS("127.0.0.1:"+port, certificate, key, routes)
	}()
	go func() { served <- controller.StartAll(ctx, controllers...) }()
	return <-served
}

func answer(ctx context.Context, admission webhook.AdmissionController) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = admission.Admit(ctx, review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}
