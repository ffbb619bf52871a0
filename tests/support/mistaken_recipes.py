"""Mistakes between steps, in the call of executor_main, in mixtures, trainings, partitions, sweeps and defaults.

The table of the parts of one step is `mistaken_scripts.py`, which has the form of a mistake.
"""

from __future__ import annotations

from mistaken_scripts import Mistake, of, of_end


def of_mixture(arguments: str, *says: str) -> Mistake:
    call = f"mixture = lm_mixture_data_config({arguments})"
    return of(f"{call}\nb = default_train('b', mixture, shape, simple)", *says, name=call)


def of_partitions(partitions: str, *says: str) -> Mistake:
    return of(f'b = Step(name="raw/b", fn=make, config=Plain(), partitions={partitions})', *says, name=partitions)


def of_two(first: str, second: str, *says: str, name: str) -> Mistake:
    """The second step, which is last, does not go with the first."""
    return of(f"b = Step({first}, fn=make)\nc = Step({second}, fn=make)  # here\nb = [b, c]", *says, name=name)


def of_sweep(budgets: str, *says: str) -> Mistake:
    sizes = "" if "{}" in budgets else ", {'s': shape}"
    call = f"isoflop('b', tokens, {budgets}{sizes}, vocab_size=512, train_config=simple)"
    return of(f"b = [point.step for point in {call}.values()]", *says, name=call)


GRAPHS = [
    Mistake(
        "two steps of one name",
        'b = Step(name="raw/b", fn=make, config=Config(count=versioned(1)))\n'
        'c = Step(name="raw/b", fn=make, config=Config(count=versioned(2)))  # here',
        ("Two steps named 'raw/b'", "count (1 and 2)", "another name"),
        end="executor_main([b, c])",
    ),
    Mistake(
        "two steps of one path",
        'b = Step(name="raw/b", fn=make, config=Config(), override_output_path="kept/x")\n'
        'c = Step(name="raw/c", fn=make, config=Config(), override_output_path="kept/x")',
        ("'raw/b' and 'raw/c'", "'kept/x'", "another output path"),
        end="executor_main([b, c])  # here",
    ),
    Mistake(
        "an output inside another one",
        'b = Step(name="raw/b", fn=make, config=Config(), override_output_path="kept")\n'
        'c = Step(name="raw/c", fn=make, config=Config(), override_output_path="kept/x")',
        ("'raw/c' at 'kept/x'", "'raw/b' at 'kept'", "another output path"),
        end="executor_main([b, c])  # here",
    ),
    Mistake(
        "two steps of one key",
        'b = Step(name="raw/b", fn=make, config=Config(), key=("k",))\n'
        'c = Step(name="raw/c", fn=make, config=Config(), key=("k",))  # here',
        ("'raw/b' and 'raw/c'", "the same asset key 'k'", "another key"),
        end="executor_main([b, c])",
    ),
    of(
        'b = Step(name="raw/b", fn=make, config=Config())\nb.config.inputs["self"] = output_path_of(b)',
        "'raw/b'",
        "reads itself",
        name="a cycle",
    ),
    of_end("executor_main([])", "an empty list", "expected at least one step"),
    of_end("executor_main(a)", "the step 'raw/a'", "Write [step]"),
    of_end("executor_main('raw/a')", "'raw/a'", "expected a list of steps"),
    of_end("executor_main(None)", "None", "expected a list of steps"),
    of_end("executor_main()", "executor_main lacks 'steps'", "executor_main(steps, …)"),
    of_end("executor_main([[a]])", "[Step('raw/a')]", "expected a step"),
    of_end("executor_main([a, 'raw/b'])", "'raw/b'", "expected a step"),
    of_end("executor_main([a, None])", "None", "expected a step"),
    of_end("executor_main({'a': a})", "{'a': Step('raw/a')}", "expected a list of steps"),
    of_end("executor_main(steps=[a], max_concurent=2)", "'max_concurent'", "Did you mean max_concurrent"),
    of_end("executor_main([a], max_concurrent=0)", "max_concurrent=0", "expected a whole number of 1 or more"),
    of_end("executor_main([a.config])", "Config(", "expected a step"),
]
PARTITIONS = [
    of_partitions("static()", "static() has no key", "static('en', 'de')"),
    of_partitions("static('en', 'en')", "the key 'en' 2 times", "each key once"),
    of_partitions("static('en', 5)", "5", "Expected a text"),
    of_partitions("static(['en', 'de'])", "['en', 'de']", "Expected a text"),
    of_partitions("['en', 'de']", "partitions=['en', 'de']", "expected static()"),
    of_partitions("static", "partitions=<function static", "expected static()"),
    of_partitions("daily('yesterday')", "daily('yesterday')", "is not a day"),
    of_partitions("daily('2026-02-30')", "daily('2026-02-30')", "is not a day"),
    of_partitions("weekly('2026-01-01')", "weekly('2026-01-01')", "'2025-12-28'"),
    of_partitions("daily()", "daily lacks 'start'", "daily(start)"),
    of_partitions("dynamic('my deliveries')", "dynamic('my deliveries')", "Expected letters"),
    of_partitions("product(day=daily('2026-01-01'))", "1 dimensions", "expected two"),
    of_partitions("product(day=daily('2026-01-01'), lang=['en'])", "lang=['en']", "expected static()"),
    of(
        'b = Step(name="raw/b", fn=make, config=Plain(value=this_window()), partitions=static("en"))',
        "this_window()",
        "no windows of time",
        name="this_window of a static set",
    ),
    of(
        'b = Step(name="raw/b", fn=make, config=Plain(value=partitions_of(days)))',
        "partitions_of('raw/days')",
        "Name the keys",
        name="partitions_of a set that grows",
    ),
    of(
        'b = Step(name="raw/b", fn=make, config=Plain(value=partitions_of(langs, "en")))',
        "'en'",
        "expected a list such as ['en']",
        name="partitions_of with a text",
    ),
    of(
        'b = Step(name="raw/b", fn=make, config=Plain(value=output_path_of(langs)), partitions=static("en", "fr"))',
        "'raw/langs'",
        "lacks 'fr'",
        name="a set with a key that the input lacks",
    ),
]
RECIPES = [
    of_mixture("{'t': tokens}, {'t': -1.0}", "give 't' -1.0", "expected a finite number of 0 or more"),
    of_mixture("{'t': tokens}, {'t': 0.0}", "0.0", "expected"),
    of_mixture("{'t': tokens}, {'tt': 1.0}", "name 'tt'", "Did you mean 't'"),
    of_mixture("{'t': tokens}, {'t': '1'}", "'1'", "expected"),
    of_mixture("{}, {}", "expected"),
    of_mixture("[tokens], [1.0]", "components", "expected"),
    of_mixture("{'t': 5}, {'t': 1.0}", "5", "expected"),
    of_mixture("{'t': tokens}, {'t': 1.0}, suffle=True", "'suffle'", "Did you mean shuffle"),
    of_mixture("{'t': tokens}, {'t': 1.0}, stop_strategy='restrat'", "'restrat'", "Did you mean 'restart'"),
    of("b = default_train('b', 'tokens', shape, simple)", "'tokens'", "expected a tokenized step"),
    of("b = default_train('b', tokens, 'llama_150m', simple)", "'llama_150m'", "expected"),
    of("b = default_train('b', tokens, model_preset('llama_150'), simple)", "'llama_150'", "Did you mean 'llama_150m'"),
    of("b = default_train('b', tokens, shape, {'num_train_steps': 5})", "of type dict", "expected a SimpleTrainConfig"),
    of("b = default_train('b', tokens, shape)", "default_train lacks 'train_config'", "default_train(name, tokenized,"),
    of("b = default_train('b', tokens, shape, simple, resource=tpu('v5p-8'))", "'resource'", "Did you mean resources"),
    of(
        "simple = SimpleTrainConfig(train_batch_size=8, num_train_steps=5, learning_rat=1)",
        "'learning_rat'",
        "learning_rate",
    ),
    of("b = default_train('b', tokens, dataclasses.replace(shape, num_layer=2), simple)", "'num_layer'", "num_layers"),
    of(
        "b = default_train('b', tokens, shape, dataclasses.replace(simple, num_train_steps=0))",
        "num_train_steps is 0",
        "expected",
    ),
    of(
        "b = default_train('b', tokens, shape, dataclasses.replace(simple, learning_rate='high'))", "'high'", "expected"
    ),
    of("b = default_train(5, tokens, shape, simple)", "name=5", "expected str"),
    of("b = default_rl('b', 'checkpoints/a', sums)", "'checkpoints/a'", "expected a step that trains"),
    of("b = default_rl('b', a, DigitSums())", "environments=DigitSums()", "expected them by name"),
    of("b = default_rl('b', a, {'sums': DigitSums})", "environment is <class", "expected an object of a dataclass"),
    of("b = default_rl('b', a, {})", "lessons is empty", "expected at least one environment"),
    of("b = default_rl('b', a, sums, SimpleTrainConfig)", "of type", "expected a TrainRlConfig"),
    of("b = default_rl('b', a, sums, TrainRlConfig(groups=6))", "groups is 6 and groups_per_unit 4", "a divisor of it"),
    of("b = default_rl('b', a, sums, TrainRlConfig(group_size=1))", "group_size is 1", "expected at least 2"),
    of("b = default_rl('b', a, sums, TrainRlConfig(num_train_steps=0))", "num_train_steps is 0", "expected"),
    of("b = default_rl('b', a, sums, TrainRlConfig(stalenes=1))", "'stalenes'", "Did you mean staleness"),
    of("b = default_rl('b', a, sums, TrainRlConfig(temperature='hot'))", "temperature is 'hot'", "expected"),
    of(
        "b = default_rl('b', a, sums, TrainRlConfig(objective=Objective(kind='gpro')))",
        "kind='gpro'",
        "Did you mean 'grpo'",
    ),
    of(
        "b = default_rl('b', a, {'sums': lesson_of(DigitSums(), is_trained=False)})",
        "No lesson that is trained",
        "Give one a weight",
    ),
    of(
        "b = default_rl('b', a, {'sums': Lesson(environment='my_tasks.Sums')})",
        "'my_tasks.Sums'",
        "expected 'package.module:Class'",
    ),
    of(
        "b = default_rl_eval('b', a)",
        "default_rl_eval lacks 'environments'",
        "default_rl_eval(name, model, environments",
    ),
    of("b = default_rl_eval('b', 5, sums)", "default_rl_eval('b') begins with 5", "expected a step that trains"),
    of("b = default_rl_eval('b', a, [DigitSums()])", "environments=[DigitSums()]", "expected them by name"),
    of("b = default_rl_eval('b', a, sums, TrainRlConfig())", "of type TrainRlConfig", "expected an RlEvalConfig"),
    of("b = default_rl_eval('b', a, sums, RlEvalConfig(pass_at=(16,)))", "pass_at has 16", "from 1 to samples=8"),
    of("b = default_rl_eval('b', a, sums, RlEvalConfig(pass_at=4))", "pass_at is 4", "tuple"),
    of("b = default_rl_eval('b', a, sums, RlEvalConfig(temperature=0.0))", "samples is 8 at the temperature 0", "to 1"),
    of("b = default_rl_eval('b', a, sums, RlEvalConfig(samples=0))", "samples is 0", "expected"),
    of("b = default_rl_eval('b', a, sums, RlEvalConfig(max_length=64))", "leaves no room", "Raise max_length"),
    of("b = default_tokenize('b', 'fineweb', a)", "dataset='fineweb'", "expected a step, a URL or an absolute path"),
    of("b = default_tokenize('b', a, None)", "tokenizer=None", "expected a step, a URL or an absolute path"),
    of("b = default_tokenize('b', a, a, sample_count=0)", "count=0", "expected at least 1"),
    of("b = default_tokenize('b', a, a, validation_fraction=2.0)", "validation_fraction", "2.0", "expected"),
    of("b = default_tokenize_chats('b', a, a, max_seq_len=64, template='chatlm')", "'chatlm'", "Did you mean 'chatml'"),
    of(
        "b = default_tokenize_chats('b', a, a, max_seq_len=64, adapter='shargpt')",
        "'shargpt'",
        "Did you mean 'sharegpt'",
    ),
    of("b = default_tokenizer('b', 'documents', vocab_size=500)", "'documents'", "expected Step | InputName"),
    of("b = default_download('b', 5)", "source=5", "expected str"),
    of("b = default_snapshot('b', a, daily('2026-01-01'))", "Step('raw/a')", "needs a step with partitions="),
    of("b = default_eval('checkpoints/x')", "'checkpoints/x'", "expected Step | InputName"),
    of("b = default_eval(a, 'hellaswag')", "evals='hellaswag'", "expected Sequence[str | EvalTask]"),
    of("b = default_eval(a, ['hellaswag', 'hellaswag'])", "'hellaswag' twice", "expected each label"),
    of("b = default_needles('x', a, a, lengths=[512, 512])", "the lengths (512, 512)", "each once"),
    of("b = default_needles('x', a, a, forms=['singel'])", "'singel'", "Did you mean 'single'?"),
    of("b = default_suite_scores('x', {})", "have no models", "expected one at least"),
    of("b = default_suite_scores('x', {'a': a}, suites=['CORE'])", "suites[0]='CORE'", "expected Suite"),
    of("b = default_eval(a, engine='vllm')", "'vllm'", "expected"),
    of("b = default_eval(a, options=HarnessOptions(repeats=0))", "repeats=0", "expected a whole number from 1"),
    of("b = default_eval(a, options=HarnessOptions(repeats='8'))", "repeats='8'", "expected"),
    of("b = default_eval(a, options=HarnessOptions(gen_kwargs='top_p=0.9'))", "gen_kwargs='top_p=0.9'", "expected"),
    of(
        "b = default_eval(a, options=HarnessOptions(gen_kwargs={'temperatur': 0.7}))",
        "temperatur=0.7",
        "Did you mean 'temperature'",
    ),
    of("b = default_inspect_eval(a, 'sums.py@sums')", "tasks='sums.py@sums'", "expected Sequence[str | InspectTask]"),
    of("b = default_inspect_eval(a, ['sums.py@sums'])", "'sums.py@sums' and no folder of tasks", "Set tasks_path"),
    of("b = default_inspect_eval(a, ['x'], folder='nowhere')", "'nowhere', which is no folder here", "Pass the folder"),
    of("b = default_inspect_eval('x', ['x'])", "default_inspect_eval('x') got no step and no Endpoint", "expected"),
    of("b = default_inspect_eval(a, ['x'], epochs='2')", "epochs='2'", "expected int | None"),
    of("b = default_perplexity(a, [a])", "sets=[Step('raw/a')]", "expected Mapping"),
    of("b = default_perplexity(a, {'x': a}, layouts={'x': 'polama'})", "'polama'", "Did you mean 'paloma'"),
    of("b = default_report('b', [a], title='x')", "steps=[Step('raw/a')]", "expected Mapping"),
    of("b = default_upload('checkpoints/x', 'me/x')", "step='checkpoints/x'", "expected Step"),
    of("b = default_upload(a, 'x')", "'x'", "expected 'owner/name'"),
    of(
        "b = default_datashop('b', a, a, 'rate {text}', sample=10, scores=5).kept",
        "scores=5",
        "expected tuple[int, int]",
    ),
    of("b = default_generation('b', a, a, 'no place')", "'no place'", "{text}"),
    of("b = default_judge('b', a, a, a, verdict='logprob')", "'logprob'", "Did you mean 'logprobs'"),
    of("b = default_judge('b', a, a, a, both_order=True)", "'both_order'", "both_orders"),
    of("b = default_judge('b', a, a, a, prompt='{instruction} {answer_a} {answer_c}')", "{answer_c}", "'answer_b'"),
    of("b = default_grades('b', a, a, prompt='no place')", "'no place'", "{conversation}"),
    of("b = default_answers('b', a, a, max_tokens=0)", "max_tokens=0", "at least 1"),
    of("b = grid(a, {})", "grid('raw/a') varies nothing", "expected values by path"),
    of("b = grid(a, {'cuont': [1, 2]})", "'cuont'", "count"),
    of("b = grid(a, {'count': []})", "[]", "expected a list of at least one"),
    of("b = grid(a, {'count': 5})", "5", "expected a list of at least one"),
    of("b = grid(a, {'count': [1, 1]})", "a value twice in [1, 1]", "expected each once"),
    of("b = grid('raw/a', {'count': [1]})", "base='raw/a'", "expected Step"),
    of_sweep("[]", "budgets is empty", "expected training FLOPs"),
    of_sweep("['1e18']", "budgets[0]='1e18'", "expected float"),
    of_sweep("[1e18, 1e18]", "The budget 1e18 occurs twice", "Remove one"),
    of_sweep("[1e9]", "The budget 1e9 is", "batches of the size 's'", "raise the budget"),
    of_sweep("{1e12: ['l']}", "the size 'l'", "expected one of the sizes 's'"),
    of_sweep("[1e12], {}", "sizes is empty", "expected models by name"),
    of("b = default_scaling_law('b', {'a': a})", "'raw/a'", "is no training of default_train"),
    of("b = default_scaling_runs('b', {})", "'b' has no trainings", "expected some by label"),
    of("b = default_comparison('b', [a, a])", "runs=[Step('raw/a'), Step('raw/a')]", "expected Mapping"),
    of("b = default_comparison('b', {'a': a}, goal='mim')", "goal is 'mim'", "Did you mean 'min'"),
    of("b = default_speedrun('b', 'raw/a', author='x', description='y')", "'raw/a'", "expected a step that trains"),
    of("b = default_speedrun('b', a, author='x', description='y', goal='mim')", "'mim'", "Did you mean 'min'"),
    of("b = default_speedrun_board('b', baseline='x', folders={'a': 'x'})", "baseline is 'x' without a floor"),
    of(
        "b = Step(name='raw/b', fn=ingest, config=IngestConfig(input_path='x', bad_rows='dorp'))",
        "bad_rows is 'dorp'",
        "expected one of 'fail', 'reject'",
    ),
    of(
        "b = Step(name='raw/b', fn=sample_documents, config=SampleDocumentsConfig(documents_path=output_path_of(a)))",
        "fraction=None and count=None",
        "Pass one",
    ),
    of("b = default_scaling_law('b', 'nowhere.csv')", "runs is 'nowhere.csv', and nothing exists", "Pass the path"),
    of("b = default_scaling_law('b', [a])", "[Step('raw/a')]", "needs a Step"),
    of("b = default_scaling_law('b', a, columns={'los': 'c4'})", "columns names 'los'", "Did you mean 'loss'"),
    of("b = default_scaling_law('b', a, held_out='7B')", "held_out='7B'", "expected Sequence[str]"),
    of("b = default_scaling_law('b', a, forecasts=[Forecast(params=7e9)])", "A forecast has params", "or flops alone"),
    of("b = default_ladder('b', a, burn_in=1.5)", "burn_in is 1.5", "expected a share from 0 to below 1"),
    of("b = KeepPolicy(keep='fisrt', sources=(), attributes_path=None)", "'fisrt'", "Did you mean 'first'"),
    of("b = named('fineweb@0.011')", "'fineweb@0.011'", "Did you mean 'fineweb@0.01'"),
]
SCRIPTS = [
    of("from marin_assets import Stepp", "'Stepp'", "Step"),
    of("from marin_assets.defaults import default_trian", "'default_trian'", "default_train"),
    of("import no_such_module", "No module named 'no_such_module'"),
    of("b = Step(name='raw/b' fn=make)", "SyntaxError", "forgot a comma"),
    of("b = stpe", "NameError: name 'stpe' is not defined"),
    of("1 / 0", "ZeroDivisionError: division by zero"),
    of(
        "@dataclass  # here\nclass Shared:\n    names: list = []",
        "mutable default <class 'list'>",
        "default_factory",
        name="a mutable default",
    ),
    of_end("pass", "makes no call of executor_main"),
]
