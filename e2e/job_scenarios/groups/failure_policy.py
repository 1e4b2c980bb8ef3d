"""podFailurePolicy: every action, both kinds of requirement (4.10)."""

from __future__ import annotations

from typing import Any

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import condition_rule, exit_code_rule, indexed, job, rules
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


def _job(*policy: Json, **more: Any) -> Json:
    return job(podFailurePolicy=rules(*policy), **more)


@scenario("chain 8a; F3, F4, F6; TestJobPodFailurePolicy: FailJob on exit codes")
async def fail_job_on_an_exit_code(stage: Stage) -> None:
    """The message names container, pod, code and rule; the other pod is deleted and counts."""
    await stage.create(_job(exit_code_rule("FailJob", 42), completions=2, parallelism=2))
    first, second = await stage.pods(2)
    await stage.run(first, second)
    await stage.fail(first, exit_code=42)
    await stage.gone(second)
    await stage.until(has("Failed"))


@scenario("F1, F4; fail job based on OnPodConditions")
async def fail_job_on_a_condition(stage: Stage) -> None:
    """The message names the condition."""
    await stage.create(_job(condition_rule("FailJob", "ConfigIssue"), completions=2, parallelism=2))
    first, second = await stage.pods(2)
    await stage.fail(first, conditions={"ConfigIssue": "True"})
    await stage.gone(second)
    await stage.until(has("Failed"))


@scenario("chain 8b; F3; TestJobPodFailurePolicy: Ignore on pod conditions", is_for_kills=False)
async def a_disruption_is_ignored(stage: Stage) -> None:
    """Not counted, replaced after the backoff; the next failure counts."""
    await stage.create(_job(condition_rule("Ignore", "DisruptionTarget"), backoffLimit=0))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.fail(pod, exit_code=143, conditions={"DisruptionTarget": "True"})
    await stage.gone(pod)
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("F3; ignore pod failure based on OnExitCodes; Q18")
async def an_exit_code_is_ignored(stage: Stage) -> None:
    """failed stays 0 and the replacement is delayed all the same."""
    await stage.create(_job(exit_code_rule("Ignore", 5), backoffLimit=0))
    await stage.fail(*await stage.pods(1), exit_code=5)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("F1; the first rule that matches decides; count pod failure: both rules are matching")
async def count_comes_before_fail_job(stage: Stage) -> None:
    """Count first, FailJob second: the failure is counted, the Job goes on."""
    await stage.create(_job(exit_code_rule("Count", 1, 2), exit_code_rule("FailJob", 2), backoffLimit=1))
    await stage.fail(*await stage.pods(1), exit_code=2)
    await stage.fail(*await stage.pods(1), exit_code=2)
    await stage.until(has("Failed"))


@scenario("F1; second jobfail rule matched for exit codes")
async def the_second_rule_matches(stage: Stage) -> None:
    """The message says rule at index 1."""
    await stage.create(_job(exit_code_rule("Ignore", 1), exit_code_rule("FailJob", 2)))
    await stage.fail(*await stage.pods(1), exit_code=2)
    await stage.until(has("Failed"))


@scenario("F1; OnExitCodes with NotIn operator")
async def not_in_a_list_of_codes(stage: Stage) -> None:
    """A code of the list counts, another fails the Job."""
    await stage.create(_job(exit_code_rule("FailJob", 1, 2, operator="NotIn")))
    await stage.fail(*await stage.pods(1), exit_code=1)
    await stage.fail(*await stage.pods(1), exit_code=3)
    await stage.until(has("Failed"))


@scenario("F1; the container does not match the containerName restriction")
async def another_container_has_the_code(stage: Stage) -> None:
    """The rule is about ``d``: the same code of ``c`` is only counted."""
    pod = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}
    await stage.create(_job(exit_code_rule("FailJob", 42, container="d"), pod=pod))
    await stage.fail(*await stage.pods(1), exit_code=42, container="c")
    await stage.fail(*await stage.pods(1), exit_code=42, container="d")
    await stage.until(has("Failed"))


@scenario("F1; fail job based on OnExitCodes for InitContainer")
async def an_init_container_has_the_code(stage: Stage) -> None:
    """Init containers are looked at after the others."""
    pod = {"initContainers": [{"name": "init", "image": "i"}]}
    await stage.create(_job(exit_code_rule("FailJob", 5), pod=pod))
    await stage.fail(*await stage.pods(1), exit_code=5, container="init")
    await stage.until(has("Failed"))


@scenario("F1; a negative exit code - needed for Windows support")
async def a_negative_exit_code(stage: Stage) -> None:
    """It is a code like any other."""
    await stage.create(_job(exit_code_rule("FailJob", -1073741510)))
    await stage.fail(*await stage.pods(1), exit_code=-1073741510)
    await stage.until(has("Failed"))


@scenario("F1; conditions with status False and Unknown")
async def conditions_that_are_not_true(stage: Stage) -> None:
    """A rule for True does not match False; one for Unknown matches Unknown."""
    await stage.create(_job(condition_rule("FailJob", "A"), condition_rule("FailJob", "B", "Unknown")))
    await stage.fail(*await stage.pods(1), conditions={"A": "False", "B": "False"})
    await stage.fail(*await stage.pods(1), conditions={"A": "False", "B": "Unknown"})
    await stage.until(has("Failed"))


@scenario("F2: no rule matches; pod status non-matching any configured rule")
async def no_rule_matches(stage: Stage) -> None:
    """The failure is counted against the limit."""
    await stage.create(_job(exit_code_rule("FailJob", 42), backoffLimit=0))
    await stage.fail(*await stage.pods(1), exit_code=1)
    await stage.until(has("Failed"))


@scenario("F1: a policy without rules; DF5", is_for_kills=False)
async def a_policy_without_rules(stage: Stage) -> None:
    """It still makes replacement wait for the end of pods."""
    await stage.create(_job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.fail(pod)
    await stage.gone(pod)
    await stage.pods(1)


@scenario("F5; terminating Pod not considered failed; a running pod does not match")
async def a_terminating_pod_is_judged_at_its_end(stage: Stage) -> None:
    """Deleted by a user, it fails with the code of the rule."""
    await stage.create(_job(exit_code_rule("FailJob", 42)))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.fail(pod, exit_code=42)
    await stage.until(has("Failed"))


@scenario("Y13-3: several pods, one ignored, one fatal, in one batch; fail job with multiple pods")
async def one_pod_is_ignored_and_one_is_fatal(stage: Stage) -> None:
    """The verdict is FailJob; the ignored one is not counted."""
    policy = (exit_code_rule("Ignore", 3), exit_code_rule("FailJob", 42))
    await stage.create(_job(*policy, completions=3, parallelism=3))
    first, second, third = await stage.pods(3)
    async with stage.stimulus("two failures"):
        await stage.fail(first, exit_code=3)
        await stage.fail(second, exit_code=42)
    await stage.gone(third)
    await stage.until(has("Failed"))


@scenario("fail indexed job based on OnExitCodes")
async def fail_job_of_an_indexed_job(stage: Stage) -> None:
    """Indexes that are done stay done."""
    await stage.create(indexed(3, podFailurePolicy=rules(exit_code_rule("FailJob", 42))))
    zero, one, two = await stage.pods(3)
    await stage.succeed(zero)
    await stage.fail(two, exit_code=42)
    await stage.gone(one)
    await stage.until(has("Failed"))


@scenario("KEP-4443, RN1: unknown to this server, so the reason is plain; F4")
async def a_rule_with_a_name(stage: Stage) -> None:
    """The server drops the field: nobody can tell."""
    await stage.create(_job({**exit_code_rule("FailJob", 42), "name": "Fatal"}))
    await stage.fail(*await stage.pods(1), exit_code=42)
    await stage.until(has("Failed"))


@scenario("T4: a pod that succeeds under a policy; counters")
async def success_under_a_policy(stage: Stage) -> None:
    """Policies are about failures."""
    await stage.create(_job(exit_code_rule("FailJob", 7, operator="NotIn"), completions=2, parallelism=2))
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))
    await stage.until(counts(succeeded=2))
