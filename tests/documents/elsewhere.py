"""The commands in the documents that ``test_documents`` does not type: which test proves them, or why none can.

Used by ``tests/documents``, which asks that every command is in one place, and that every test named here exists.
"""

from __future__ import annotations

_DEV = "tests/cli/test_cli_demo_and_dev.py"
_DIFFERENTIAL = "e2e/test_api_differential.py::test_a_real_server_and_ours_give_the_same_verdicts"
_AVAILABILITY = "e2e/test_high_availability.py"
_RESTART = "e2e/test_restart.py"
_KUBELET = "asks a kubelet of the management cluster, and these control planes have none"
_SELF = "is how this test is run"
_ROLES = "tests/cli/test_worker_roles.py::test_everything_granted_is_what_the_files_say"
_BENCH = "e2e/test_bench.py::test_the_manager_is_measured_from_outside"
_KUEUE = "takes Kueue, which has images and needs nodes; played by hand with Kueue as processes (bench/README.md)"
_QUEUES = "takes Kueue; what it does is played by tests/flows/test_queues.py"

PROVED: dict[str, str] = {
    "mirror take-over jobmirror-system --namespace mirror-system": (
        f"{_AVAILABILITY}::test_an_installation_that_was_moved_takes_over_what_it_had_placed"
    ),
    "mirror take-over jobmirror-system --namespace mirror-system --dry-run": (
        f"{_AVAILABILITY}::test_an_installation_that_was_moved_takes_over_what_it_had_placed"
    ),
    "kubectl get events -A --field-selector reason=OtherManager": (
        f"{_AVAILABILITY}::test_an_installation_that_was_moved_takes_over_what_it_had_placed"
    ),
    "kubectl annotate namespace team-a jobmirror.io/on-worker-loss=Fence": (
        "e2e/test_fence.py::test_what_a_namespace_says_holds_for_its_jobs"
    ),
    "kubectl get events -n team-a": "e2e/test_fence.py::test_what_a_namespace_says_holds_for_its_jobs",
    "python -m e2e.kind_statuses": ("e2e/test_kind_statuses.py::test_no_status_that_we_write_is_refused"),
    "python -m e2e.kind_statuses --statuses N [KIND …]": (
        "e2e/test_kind_statuses.py::test_no_status_that_we_write_is_refused"
    ),
    "python -m e2e.chaos --minutes N --seed S": "e2e/test_chaos.py::test_a_short_campaign_breaks_no_invariant",
    "python -m e2e.chaos judge HISTORY": "e2e/test_chaos_judge.py::test_a_stored_history_is_judged_again",
    "make demo": f"{_DEV}::test_the_demo_ends_well",
    ".venv/bin/mirror demo": f"{_DEV}::test_the_demo_ends_well",
    "mirror demo --kinds": f"{_DEV}::test_the_demo_shows_other_kinds_beside_jobs",
    ".venv/bin/mirror dev": f"{_DEV}::test_dev_serves_until_it_is_told_to_stop",
    "mirror dev --page": f"{_DEV}::test_dev_serves_until_it_is_told_to_stop",
    "mirror apiserver --listen 127.0.0.1:6443 --kubeconfig-out dev.kubeconfig": (
        "tests/cli/test_cli_apiserver.py::test_it_serves_until_it_is_told_to_stop"
    ),
    "kubectl --kubeconfig dev.kubeconfig create job hello --image=busybox -- echo hello": (
        "e2e/test_embedded_clients.py::test_kubectl_lives_with_a_job"
    ),
    "mirror job-controller --kubeconfig cluster.kubeconfig": (
        "e2e/test_job_controller_process.py::test_it_runs_a_job_and_tells"
    ),
    "helm install jobmirror deploy/helm/jobmirror --namespace jobmirror-system --create-namespace"
    " --set image.repository=REGISTRY/jobmirror --set config.webhook.enabled=true --set config.access.enabled=true": (
        "e2e/test_manifests.py::test_the_chart_gives_what_kustomize_gives"
    ),
    "helm install jobmirror oci://IMAGE/charts/jobmirror --namespace jobmirror-system --create-namespace": (
        "tests/deploy/test_release.py::test_the_readme_installs_what_a_release_publishes"
    ),
    "docker build --file deploy/image/Dockerfile --tag REGISTRY/jobmirror:0.1.0 .": (
        "e2e/test_image.py::test_it_is_installed_and_runs_without_a_home"
    ),
    "kubectl -n jobmirror-system port-forward service/jobmirror 8443:443 &": (
        "tests/cli/test_user_commands.py::test_a_port_forward_to_the_manager_works"
    ),
    "mirror logs -l app=train": "tests/cli/test_user_logs.py::test_labels_choose_all_pods_of_their_jobs",
    "kubectl mirror logs -f -l app=train": "tests/cli/test_user_logs.py::test_several_jobs_are_followed_together",
    "mirror run --config FILE": f"{_RESTART}::test_a_manager_that_is_told_to_stop_in_a_wave_ends_cleanly_and_soon",
    "mirror place --dry-run -f job.yaml": (
        "tests/cli/test_user_commands.py::test_place_explains_every_filter_and_score"
    ),
    "mirror place --dry-run -f FILE": ("tests/cli/test_user_commands.py::test_place_explains_every_filter_and_score"),
    "mirror kinds": "tests/cli/test_cli_kinds.py::test_what_is_built_in_is_listed",
    "mirror kinds --config FILE": "tests/cli/test_cli_kinds.py::test_what_a_file_enables_is_listed_first",
    "kubectl apply -f config/rbac/kinds/management-jobset.yaml": (
        "e2e/test_jobsets.py::test_a_job_set_runs_on_a_worker_beside_a_job_of_its_name"
    ),
    "kubectl apply -f config/rbac/kinds/worker-jobset.yaml": (
        "e2e/test_jobsets.py::test_a_job_set_runs_on_a_worker_beside_a_job_of_its_name"
    ),
    "mirror kinds --check": "e2e/test_kinds_check.py::test_an_operator_sees_what_each_cluster_lacks",
    "mirror worker add --kinds": ("tests/cli/test_worker_roles.py::test_kinds_are_granted_as_their_files_say"),
    "mirror worker add --kinds JobSet,simulations.example.com": (
        "e2e/test_own_kinds.py::test_a_user_submits_reads_suspends_resumes_and_deletes_one"
    ),
    "mirror worker list -w": "tests/cli/test_output_shape.py::test_workers_are_watched_until_it_is_interrupted",
    "mirror --version": "tests/cli/test_cli_commands.py::test_version_is_printed",
    "pipx install jobmirror": "tests/deploy/test_distribution.py::test_the_wheel_is_installed_with_all_of_its_commands",
    "mirror worker set east --capacity 20 --labels region=eu,gpu-": (
        "tests/cli/test_cli_worker.py::test_what_a_worker_gets_is_set_and_taken_away"
    ),
    "mirror worker add --watch-pods": _ROLES,
    "mirror worker add --read-workloads": _ROLES,
    "mirror worker add --seed-progress": _ROLES,
    "mirror worker drain --move": "tests/cli/test_cli_worker.py::test_a_drain_by_moving_is_asked_for_on_the_secret",
    "mirror worker add --scores quota": _ROLES,
    "mirror worker add --scores clusterQueue": _ROLES,
    "mirror worker add --scores allocatable": _ROLES,
    "mirror worker add --scores NAMES": _ROLES,
    "mirror worker add --pod-requests": _ROLES,
    "mirror worker add --from-secret NAMESPACE/NAME": (
        "tests/cli/test_cli_worker.py::test_a_worker_is_added_by_an_administrators_kubeconfig_in_a_secret"
    ),
    "mirror worker add --from-secret": (
        "tests/cli/test_cli_worker.py::test_a_worker_is_added_by_an_administrators_kubeconfig_in_a_secret"
    ),
    "mirror worker add prod --from-secret clusters/prod-kubeconfig": (
        "tests/cli/test_cli_worker.py::test_a_worker_is_added_by_an_administrators_kubeconfig_in_a_secret"
    ),
    "mirror worker add --logs": "e2e/test_worker_commands.py::test_a_worker_from_the_first_command_to_the_last",
    "python -m bench.mirroring --management $M --worker $W --pid manager=$PID --jobs 40 --rate 10": _BENCH,
    "python -m bench.mirroring --management $M --worker $W --pid manager=$PID --jobs 1000 --settle 30": _BENCH,
    "python -m e2e.scale --jobs 100000 --workers 1000 --managers 4": (
        "e2e/test_scale.py::test_two_managers_share_the_work_and_one_is_lost"
    ),
    "python -m bench.minimum $M $W & PID=$!": "e2e/test_bench.py::test_the_minimum_is_measured_in_the_same_way",
    "python -m bench.mirroring --management $M --worker $W --pid minimum=$PID"
    " --managed-by bench.jobmirror.io/minimum": "e2e/test_bench.py::test_the_minimum_is_measured_in_the_same_way",
    "python -m bench.jobs --cluster $W --jobs 20 --completions 50 --parallelism 10": (
        "e2e/test_bench.py::test_a_job_controller_is_measured_from_outside"
    ),
    "mirror worker add east --management-kubeconfig $M --kubeconfig $W --context context --allow loopback": (
        "e2e/test_worker_commands.py::test_a_worker_from_the_first_command_to_the_last"
    ),
    "kubectl --kubeconfig $M create namespace jobmirror-system": _BENCH,
    "mirror run --config bench/jobmirror.yaml & PID=$!": (
        "tests/bench/test_bench_arithmetic.py::test_the_manager_that_is_measured_starts_with_its_settings"
    ),
    "python -m e2e.api_differential": _DIFFERENTIAL,
    "python -m e2e.api_sequences --paths --seed N --count N": (
        "e2e/test_api_sequences.py::test_odd_paths_let_nobody_through_whom_a_real_server_refuses"
    ),
    "python -m e2e.api_differential --seed N --count N": _DIFFERENTIAL,
    ".venv/bin/python -m e2e.api_differential --seed 1 --count 2000": _DIFFERENTIAL,
    "python -m e2e.rule_differential --seed N --rounds N": (
        "e2e/test_rule_differential.py::test_random_rules_are_judged_alike"
    ),
    "python -m e2e.job_scenarios [NAME …]": "e2e/test_job_differential.py::test_ours_does_what_upstream_does",
    "python -m e2e.api_contract --server real|embedded [words]": (
        "e2e/test_api_contract.py::test_a_real_server_does_what_the_contract_says"
    ),
    "python -m e2e.api_sequences --seed N --count N [--shrink]": (
        "e2e/test_api_sequences.py::test_a_real_server_and_the_embedded_one_say_the_same"
    ),
}
"""Commands, and the tests that do the same."""

NOT_RUN: dict[str, str] = {
    "make check": _SELF,
    "make test": _SELF,
    "pytest e2e": _SELF,
    "pytest e2e -n 3 --dist loadfile": _SELF,
    ".venv/bin/python -m pytest -q tests/settings": _SELF,
    ".venv/bin/python -m pytest -q e2e/test_lifecycle.py": _SELF,
    "make build-controlplane": "compiles what these tests run on; make test begins with it",
    "python -m e2e.controlplane build": "compiles what these tests run on; make test begins with it",
    "python -m e2e.controlplane build --kinds": "compiles controllers for half an hour; make kinds begins with it",
    "python -m e2e.kind_wave --seed 14 --kills 50": "takes long; e2e/test_kind_faults.py plays few kills",
    "python -m e2e.controlplane up": "starts the control planes of e2e/conftest.py, and waits for Ctrl-C",
    "python -m e2e.chaos --minutes 60 --seed 1001 --workers 3": "takes an hour; e2e/test_chaos.py plays a short one",
    "make bench": "measures for an hour",
    "python -m e2e.bench outage": "measures for some minutes",
    "python -m e2e.bench kinds": "measures for some minutes",
    "python -m e2e.bench_kinds": "measures for half an hour",
    "python -m e2e.bench_kinds switched --runs 5": "measures for a quarter of an hour",
    "python -m e2e.bench_kinds mixed --runs 3": "measures for ten minutes",
    "python -m e2e.bench idle burst --runs 3": "measures for some minutes",
    "python -m e2e.bench_jobs": "measures for an hour",
    "python -m e2e.controlplane up --workers 1": "starts control planes, and waits for Ctrl-C",
    "python -m e2e.controlplane up --bare --workers 1": "starts control planes, and waits for Ctrl-C",
    "kubectl get workloads -n team-a": _QUEUES,
    "kubectl get admissionchecks,clusterqueues -o yaml": _QUEUES,
    "kubectl --kubeconfig east.kubeconfig -n team-a patch workload job-train-1a2b3 --type merge"
    ' -p \'{"spec":{"active":false}}\'': _QUEUES,
    "helm install kueue oci://registry.k8s.io/kueue/charts/kueue --version 0.19.2 --namespace kueue-system"
    " --create-namespace --kubeconfig $M --values bench/multikueue/values.yaml": _KUEUE,
    "kubectl --kubeconfig $W apply --server-side --filename bench/multikueue/worker.yaml": _KUEUE,
    "kubectl --kubeconfig $M --namespace kueue-system create secret generic east"
    " --from-file=kubeconfig=east.kubeconfig": _KUEUE,
    "kubectl --kubeconfig $M apply --server-side --filename bench/multikueue/management.yaml": _KUEUE,
    "kubectl --kubeconfig $M wait --for=condition=Active multikueuecluster/east clusterqueue/everything": _KUEUE,
    "python -m bench.mirroring --name multikueue --management $M --worker $W --queue users --timeout 900"
    " --pid manager=PID --pid worker=PID --jobs 40 --rate 10": _KUEUE,
    "python -m e2e.bench_dependencies": "measures for some minutes",
    "python -m e2e.bench_page": "measures for a minute; e2e/test_bench.py has its parts, small",
    "python -m e2e.bench scale": "measures for half an hour",
    "python -m e2e.bench kinds --runs 3": "measures for half an hour",
    "python -m e2e.bench_pods memory": "measures for a minute",
    "python -m e2e.bench_pods burst": "measures for some minutes",
    "python -m e2e.bench_moves": "measures for some minutes",
    "python -m e2e.bench_fences --jobs 100 --minutes 21": "measures for so many minutes",
    "python -m e2e.bench idle burst kinds outage scale --runs 3": "measures for an hour",
    "python -m e2e.bench_jobs limited50 limited100 unlimited big big-indexed twice starved --runs 3": (
        "measures for an hour"
    ),
    "python -m e2e.bench_embedded": "measures for minutes",
    "python -m e2e.upstream_jobs": "compiles and plays a suite of Kubernetes, for a quarter of an hour",
    "python -m e2e.upstream_jobs [REGEX]": "compiles Kubernetes' integration tests, and plays them for many minutes",
    "python -m e2e.without_rights": "takes every right away in turn; e2e/test_shipped_rights.py has its quick half",
    "python -m e2e.demo_picture docs/demo.svg": "draws a picture into the tree; e2e/test_terminal.py has its parts",
    "python -m e2e.api_contract.record FILE": "writes what tests/embedded reads, from a real server",
    ".venv/bin/python deploy/generate.py": "writes into the tree; tests/deploy checks that there is nothing to write",
    "kubectl krew install --manifest=mirror.yaml": (
        "downloads an archive of a release; e2e/test_plugin_archive.py builds and runs such an archive"
    ),
    "docker push REGISTRY/jobmirror:0.1.0": "needs a registry",
    "kubectl --namespace jobmirror-system rollout status deployment/jobmirror": (
        "waits for pods, and these control planes have no nodes for them; e2e/kind/run.sh does it"
    ),
    "kubectl -n jobmirror-system logs deployment/jobmirror": _KUBELET,
    "kubectl -n jobmirror-system logs deployment/jobmirror --tail=200": _KUBELET,
    "kubectl --namespace jobmirror-system port-forward deployment/jobmirror 8081": _KUBELET,
    "kubectl -n jobmirror-system port-forward pod/NAME 8443": _KUBELET,
    "kubectl label namespace gateways jobmirror.io/page=true": (
        "these control planes have no network to be let through; e2e/test_chart.py sees the policy"
    ),
    "kubectl -n jobmirror-system describe certificate": "asks for cert-manager's custom resources",
}
"""Commands that no test runs, each with the reason."""
