use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const RUN: RunFacts<'static> = RunFacts {
    name: "grade",
    namespace: "school",
    uid: "u-1",
    thread: "u-1",
};

fn inline(value: Value) -> TaskResult<'static> {
    TaskResult {
        output: Output::Inline(Cow::Owned(value)),
        outcome: Some("Success"),
        artifacts: json!([]),
    }
}

fn scope(params: &Value) -> RunScope<'_> {
    let mut scope = RunScope::new(RUN, params);
    scope.insert(
        "split",
        inline(json!({"rows": [{"id": "a", "n": 1}, {"id": "b", "n": 2}], "note": "ok"})),
    );
    scope.insert("my-task", inline(json!(7)));
    let output = Output::Ref {
        path: "state/x.json".into(),
        bytes: 99_999,
        sha256: "ab".into(),
    };
    let artifacts = json!([{"path": "outputs/a.csv", "bytes": 3}]);
    scope.insert(
        "big",
        TaskResult {
            output,
            outcome: Some("Success"),
            artifacts,
        },
    );
    scope.insert(
        "skipped",
        TaskResult {
            output: Output::None,
            outcome: Some("Skipped"),
            artifacts: json!([]),
        },
    );
    scope
}

fn params() -> Value {
    json!({"passMark": 60, "half": 0.5, "name": "Zoë", "huge": 18_446_744_073_709_551_615_u64, "list": [3, 1, 2], "no": null})
}

fn evaluate(template: &Value) -> Result<Value, TemplateError> {
    let (params, item) = (params(), json!({"id": "q-7", "question": "2+2?"}));
    let run = scope(&params);
    Template::parse(template, Variables::Item)?.evaluate(&run.item(&item, 4))
}

#[track_caller]
fn check(text: &str, expected: impl Into<Value>) {
    assert_eq!(evaluate(&json!(text)), Ok(expected.into()), "{text}");
}

#[track_caller]
fn fails(text: &str) -> ExprError {
    match evaluate(&json!(text)) {
        Ok(value) => panic!("{text} gave {value}"),
        Err(error) => error.error,
    }
}

#[track_caller]
fn fails_with(text: &str, part: &str) {
    let error = fails(text);
    assert!(error.to_string().contains(part), "{text}: {error}");
}

#[test]
fn a_string_that_is_one_expression_keeps_its_type() {
    check("${params.passMark}", 60);
    check("${params.half}", 0.5);
    check("${params.list}", json!([3, 1, 2]));
    check("${params.no}", Value::Null);
    check("${item}", json!({"id": "q-7", "question": "2+2?"}));
    check("${tasks.split.output.rows[1].id}", "b");
    check("${ index }", 4);
    check(
        "${run}",
        json!({"name": "grade", "namespace": "school", "uid": "u-1", "thread": "u-1"}),
    );
}

#[test]
fn in_a_mixed_string_values_become_text() {
    check("hello ${params.name}, ${params.passMark}%", "hello Zoë, 60%");
    check("${params.passMark}${params.half}", "600.5");
    check(
        "rows: ${tasks.split.output.rows.map(r, r.id)}",
        r#"rows: ["a","b"]"#,
    );
    check("${params.no} ${true} ${{'a': 'b'}}", r#"null true {"a":"b"}"#);
}

#[test]
fn a_prompt_is_text_even_if_it_is_one_expression() {
    let params = params();
    let run = scope(&params);
    let rendered = |text| {
        TextTemplate::parse(text, Variables::Run)
            .unwrap()
            .render(&run.scope())
            .unwrap()
    };
    assert_eq!(rendered("${tasks.split.output.rows[0]}"), r#"{"id":"a","n":1}"#);
    assert_eq!(rendered("${params.name}"), "Zoë");
    assert_eq!(rendered("plain"), "plain");
}

#[test]
fn dollars_are_literal_unless_they_open_an_expression() {
    check("$${params.x}", "${params.x}");
    check("cost: 5$ or $5, $", "cost: 5$ or $5, $");
    check("$$", "$$");
    check("$$${x", "$${x");
    check("", "");
}

#[test]
fn the_closing_brace_is_found_behind_strings_maps_and_comments() {
    check("${'}'}", "}");
    check("a ${\"}\\\"}\"} b", "a }\"} b");
    check(r"${r'\}'}.", r"\}.");
    check("${{'a': {'b': 1}}.a.b}", 1);
    check("${1 // the } closes nothing\n + 1}", 2);
    check("${{'a': 1}}", json!({"a": 1}));
    assert_eq!(fails("text ${params.a"), ExprError::Unclosed { at: 5 });
    assert_eq!(fails("${'}"), ExprError::Unclosed { at: 0 });
    assert_eq!(fails("${1 // }"), ExprError::Unclosed { at: 0 });
}

#[test]
fn fields_that_take_one_expression_say_so() {
    assert!(is_single_expression("${a.b}"));
    for text in ["", "a", "${a} ", " ${a}", "${a}${b}", "$${a}", "${a"] {
        assert!(!is_single_expression(text), "{text}");
    }
    let error = Expression::parse_field("rows", Variables::Run).unwrap_err();
    assert_eq!(
        error.error,
        ExprError::NotOneExpression {
            found: "rows".to_owned()
        }
    );
}

#[test]
fn guards_items_and_keys_take_their_type_only() {
    let (params, item) = (params(), json!({"id": 5, "ok": true, "list": [1]}));
    let run = scope(&params);
    let scope = run.item(&item, 0);
    let parse = |text| Expression::parse_field(text, Variables::Item).unwrap();
    assert_eq!(parse("${item != null}").evaluate_guard(&scope), Ok(true));
    assert_eq!(parse("${item.list}").evaluate_items(&scope), Ok(vec![json!(1)]));
    assert_eq!(parse("${item.id}").evaluate_key(&scope), Ok("5".to_owned()));
    for error in [
        parse("${item.id}").evaluate_guard(&scope).unwrap_err(),
        parse("${item}").evaluate_items(&scope).unwrap_err(),
        parse("${0.5}").evaluate_key(&scope).unwrap_err(),
        parse("${''}").evaluate_key(&scope).unwrap_err(),
    ] {
        assert!(matches!(error.error, ExprError::WrongResult { .. }), "{error}");
    }
}

#[test]
fn json_integers_are_integers_and_numbers_mix() {
    check("${params.passMark == 60}", true);
    check("${params.list[0] == 3 && params.list[0] < 3.5}", true);
    check("${params.passMark * params.half}", 30);
    check("${7 / 2}", 3);
    check("${7 / 2.0}", 3.5);
    check("${7 % 4 - -1}", 4);
    check("${params.huge > 9223372036854775807}", true);
    check("${9007199254740993 == 9007199254740992.0}", false);
    fails_with("${9223372036854775807 + 1}", "int64");
    fails_with("${1 / 0}", "division by zero");
    fails_with("${1.0 / 0.0}", "JSON cannot");
    fails_with("${'a' + 1}", "string()");
}

#[test]
fn comprehensions_and_functions_work() {
    check(
        "${tasks.split.output.rows.filter(r, r.n > 1).map(r, r.id)}",
        json!(["b"]),
    );
    check(
        "${tasks.split.output.rows.map(r, r.n > 1, r.n * 10)}",
        json!([20]),
    );
    check(
        "${[1, 2, 3].all(x, x > 0) && ![1, 2].exists(x, x > 2) && [1, 2].exists_one(x, x == 2)}",
        true,
    );
    check("${{'b': 1, 'a': 2}.map(k, k)}", json!(["a", "b"]));
    check(
        "${[[1, 2], [3]].map(l, l.map(x, x + size(l)))}",
        json!([[3, 4], [4]]),
    );
    check("${size(params.name)}", 3);
    check("${'a,b'.split(',').map(s, s.upperAscii()).join('-')}", "A-B");
    check(
        "${'x1y'.matches('[0-9]') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')}",
        true,
    );
    check("${max(params.list) + min(5, 2)}", 5);
    check("${string(1.5) + string(true) + string(2)}", "1.5true2");
    check("${int('42') + int(1.9) + int(double('1.5'))}", 44);
    check("${' a-b '.trim().replace('-', '+')}", "a+b");
    check(
        "${2 in params.list && 'passMark' in params && !('x' in params)}",
        true,
    );
    check(
        "${{'a': [1, {'b': null}]} == {'a': [1.0, {'b': null}]} && [1] != ['1']}",
        true,
    );
    check("${has(params.nothing) ? 1 : has(params.name) ? 2 : 3}", 2);
    check("${[1] + [2] + []}", json!([1, 2]));
    check("${params.list.contains(2)}", true);
}

#[test]
fn an_error_beside_a_deciding_operand_does_not_count() {
    check("${has(item.x) && item.x > 1}", false);
    check("${item.x > 1 || true}", true);
    check("${[0, 1].exists(d, 1 / d == 1)}", true);
    check("${[0, 1].all(d, 1 / d == 2)}", false);
    fails_with("${[1, 0, 1].all(d, 1 / d == 1)}", "division by zero");
    fails_with("${[0, 5].exists(d, 1 / d == 2)}", "division by zero");
    fails_with("${[0].exists(d, 1 / d == 2)}", "division by zero");
    fails_with("${item.x || false}", "no field \"x\"");
}

#[test]
fn missing_fields_and_wrong_types_are_named() {
    fails_with(
        "${params.passmark}",
        "no field \"passmark\"; the object has \"half\", \"huge\"",
    );
    fails_with("${params.name.first}", "a string has no field");
    fails_with("${params.list[9]}", "3 elements, there is no element 9");
    fails_with("${params.list['a']}", "a list has no field");
    fails_with(
        "${params.passMark ? 1 : 2}",
        "must be a boolean, found an integer",
    );
    fails_with("${{1: 2}}", "key of an object must be a string");
    fails_with("${{'a': 1, 'a': 2}}", "stands twice");
    fails_with("${'a'.matches('(')}", "regular expression");
    fails_with("${params.name.map(x, x)}", "take a list or an object");
}

#[test]
fn the_place_of_a_fault_is_a_json_pointer() {
    let error = evaluate(&json!({"a/b": [1, {"c": "x ${params.nope}"}]})).unwrap_err();
    assert_eq!(error.pointer, "/a~1b/1/c");
    assert_eq!(error.expression, "params.nope");
    assert!(
        error
            .to_string()
            .starts_with("/a~1b/1/c: ${params.nope}: there is no field"),
        "{error}"
    );
}

#[test]
fn values_are_templates_and_keys_are_not() {
    assert_eq!(
        evaluate(&json!({"q": "${item.question}", "n": [1, "${index}", null, 1.0], "$${k}": true})),
        Ok(json!({"q": "2+2?", "n": [1, 4, null, 1.0], "${k}": true}))
    );
    let error = evaluate(&json!({"${params.name}": 1})).unwrap_err().error;
    assert_eq!(
        error,
        ExprError::ExpressionInKey {
            key: "${params.name}".to_owned()
        }
    );
}

fn names(text: &str) -> Result<Vec<(String, bool)>, ExprError> {
    let references = references(text, Variables::Item)?;
    Ok(references
        .into_iter()
        .map(|reference| (reference.task, reference.reads_output))
        .collect())
}

#[track_caller]
fn check_references(text: &str, expected: &[(&str, bool)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(task, reads)| ((*task).to_owned(), *reads))
        .collect();
    assert_eq!(names(text), Ok(expected), "{text}");
}

#[test]
fn dependencies_are_read_from_the_tree() {
    check_references("params.a + item.b + index", &[]);
    check_references("tasks.a.output.x + tasks.b.outcome", &[("a", true), ("b", false)]);
    check_references("tasks[\"my-task\"].output", &[("my-task", true)]);
    check_references("tasks['if'].outputRef.path", &[("if", false)]);
    check_references(
        "[1].map(x, tasks.a.artifacts.filter(f, f.path in tasks.b.output))",
        &[("a", false), ("b", true)],
    );
    check_references("tasks.a", &[("a", true)]);
    check_references("tasks.a[params.field]", &[("a", true)]);
    check_references("has(tasks.a.output)", &[("a", false)]);
    check_references("has(tasks.a.output.x)", &[("a", true)]);
    check_references(
        "{'k': tasks.a.outcome == 'Success' ? [tasks.c.output] : []}",
        &[("a", false), ("c", true)],
    );
}

#[test]
fn other_uses_of_tasks_are_errors_that_name_them() {
    for (text, found) in [
        ("tasks[params.name].output", "a field name"),
        ("tasks[item]", "the variable item"),
        ("tasks[0]", "the number 0"),
        ("tasks['a' + 'b']", "a computed name"),
        ("size(tasks)", "tasks alone"),
        ("tasks.map(t, t)", "tasks alone"),
        ("tasks", "tasks alone"),
    ] {
        let error = names(text).unwrap_err();
        assert!(
            matches!(&error, ExprError::IndexedTasks { found: f } if f.contains(found)),
            "{text}: {error}"
        );
    }
    assert!(
        matches!(names("tasks.a.result"), Err(ExprError::UnknownTaskField { task, field }) if task == "a" && field == "result")
    );
}

#[test]
fn unknown_names_are_errors_that_list_the_known_ones() {
    let error = names("param.x").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("\"param\"; allowed here are params, tasks, run, item and index"),
        "{error}"
    );
    assert!(references("item.x", Variables::Run).is_err());
    assert!(references("index", Variables::Run).is_err());
    let error = names("now()").unwrap_err();
    assert!(error.to_string().contains("no function now with 0"), "{error}");
    assert!(matches!(
        names("'a'.size(1)"),
        Err(ExprError::UnknownFunction { .. })
    ));
    assert!(matches!(names("b'ab'"), Err(ExprError::Unsupported { .. })));
    assert!(matches!(names("1u"), Err(ExprError::Unsupported { .. })));
    assert!(matches!(names("a.B{c: 1}"), Err(ExprError::Unsupported { .. })));
    assert!(matches!(names("[1].map(item, item)"), Err(ExprError::Shadowed { name }) if name == "item"));
    assert!(
        matches!(names("[1].map(x, x) + x"), Err(ExprError::UnknownVariable { name, .. }) if name == "x")
    );
}

#[test]
fn strings_that_the_parser_would_garble_are_refused() {
    for text in [
        "'''it's a } here'''",
        r"r'\'",
        r#"r'a\"b'"#,
        r#"'\"'"#,
        r#""\'""#,
        r"R'''a'''",
    ] {
        let text = format!("x ${{{text}}}");
        assert!(matches!(fails(&text), ExprError::Unsupported { .. }), "{text}");
    }
    check(r#"${'\\' + "\"" + '\'' + r'\d' + '' + ""}"#, r#"\"'\d"#);
    check(r"${'\u00e9\n'} // '''", "é\n // '''");
}

#[test]
fn what_is_no_cel_is_a_syntax_error_with_its_place() {
    for text in [
        "",
        " ",
        "1 +",
        "a b",
        "'",
        "tasks.",
        "[1",
        "params.in",
        "@result",
        "x ? 1",
    ] {
        let error = names(text).err();
        assert!(
            matches!(error, Some(ExprError::Syntax { .. })),
            "{text:?}: {error:?}"
        );
    }
}

#[test]
fn outputs_that_are_files_are_refused_by_what_the_expression_touches() {
    assert_eq!(
        fails("${tasks.big.output.x}"),
        ExprError::OutputNotInline {
            task: "big".to_owned()
        }
    );
    assert_eq!(
        fails("${false ? tasks.big.output : 1}"),
        ExprError::OutputNotInline {
            task: "big".to_owned()
        }
    );
    assert_eq!(
        fails("${tasks.big}"),
        ExprError::OutputNotInline {
            task: "big".to_owned()
        }
    );
    check(
        "${tasks.big.outputRef}",
        json!({"path": "state/x.json", "bytes": 99_999, "sha256": "ab"}),
    );
    check("${tasks.big.artifacts.map(a, a.path)}", json!(["outputs/a.csv"]));
    check("${has(tasks.big.output)}", false);
    check("${tasks.big.outcome}", "Success");
}

#[test]
fn a_skipped_task_has_a_null_output() {
    check(
        "${tasks.skipped.output == null && tasks.skipped.outcome == 'Skipped'}",
        true,
    );
    check("${tasks.skipped.outputRef}", Value::Null);
    check(
        "${tasks['my-task']}",
        json!({"output": 7, "outputRef": null, "outcome": "Success", "artifacts": []}),
    );
    assert_eq!(
        fails("${tasks.other.outcome}"),
        ExprError::UnknownTask {
            task: "other".to_owned()
        }
    );
}

#[test]
fn a_template_knows_its_tasks() {
    let template =
        json!({"a": ["${tasks.a.output} and ${tasks.b.outcome}"], "c": "${tasks.b.output}", "d": 1});
    let tasks = Template::parse(&template, Variables::Run).unwrap().tasks();
    let reference = |task: &str| TaskRef {
        task: task.to_owned(),
        reads_output: true,
    };
    assert_eq!(tasks, BTreeSet::from([reference("a"), reference("b")]));
    let text = TextTemplate::parse("see ${tasks.a.output}", Variables::Run).unwrap();
    assert_eq!(text.tasks(), BTreeSet::from([reference("a")]));
}

#[test]
fn expressions_are_bounded_in_length_and_nesting() {
    let longest = format!("'{}'", "x".repeat(MAX_EXPRESSION_CHARS - 2));
    assert!(references(&longest, Variables::Run).is_ok());
    assert_eq!(
        references(&format!("{longest} "), Variables::Run),
        Err(ExprError::TooLong { chars: 1025 })
    );
    assert!(references("[1].map(a, [a].map(b, b)).map(c, [c].map(d, d))", Variables::Run).is_ok());
    let three = "[1].map(a, [a].map(b, [b].filter(c, true)))";
    assert_eq!(
        references(three, Variables::Run),
        Err(ExprError::ComprehensionsTooDeep)
    );
}

/// As deep as 1,024 characters allow, on half of the stack that a worker thread has.
#[test]
fn deep_expressions_are_refused_before_a_stack_ends() {
    let deep = [
        format!("{}1{}", "(".repeat(500), ")".repeat(500)),
        format!("{}1{}", "[".repeat(500), "]".repeat(500)),
        format!("{}1", "-".repeat(1000)),
        format!("{}true", "!".repeat(1000)),
        format!("{}1", "- ".repeat(500)),
        format!("{}1", "[-".repeat(500)),
        format!("params{}", ".a".repeat(500)),
        format!("params{}", "[0]".repeat(330)),
        format!("1{}", "+1".repeat(500)),
        format!("1{}", "?1:1".repeat(250)),
        format!("true{}", "&&true".repeat(169)),
        format!("{}1{}", "size(".repeat(160), ")".repeat(160)),
        format!("{}1", "{'a':".repeat(200)),
        format!("params{}", ".trim()".repeat(140)),
        "(".repeat(1024),
        "'".repeat(1023),
        "?".repeat(1024),
    ];
    let small = std::thread::Builder::new().stack_size(1024 * 1024);
    let done = small.spawn(move || {
        for text in deep {
            let _refused_or_not = references(&text, Variables::Run);
        }
    });
    assert!(done.unwrap().join().is_ok());
    assert_eq!(
        references(&format!("params{}", ".a".repeat(500)), Variables::Run),
        Err(ExprError::TooNested)
    );
}

fn numbers(count: usize) -> Value {
    (0..count).map(Value::from).collect()
}

#[test]
fn inputs_are_bounded_by_what_an_expression_reads() {
    let params = json!({"text": "x".repeat(MAX_INPUT_BYTES)});
    let run = scope(&params);
    let parse = |text| Expression::parse_field(text, Variables::Run).unwrap();
    let error = parse("${size(params.text)}")
        .evaluate(&run.scope())
        .unwrap_err()
        .error;
    assert_eq!(
        error,
        ExprError::InputTooLarge {
            bytes: MAX_INPUT_BYTES + 11
        }
    );
    assert_eq!(
        parse("${tasks.split.output.note}").evaluate(&run.scope()),
        Ok(json!("ok"))
    );
}

#[track_caller]
fn bomb(text: &str, params: &Value) -> Result<Value, ExprError> {
    let run = scope(params);
    let started = Instant::now();
    let result = Expression::parse_field(text, Variables::Run)
        .unwrap()
        .evaluate(&run.scope());
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{text} took {:?}",
        started.elapsed()
    );
    result.map_err(|error| error.error)
}

#[test]
fn bombs_are_refused_in_bounded_time() {
    // 52,000 numbers are 256 KiB.
    let params = json!({"l": numbers(44_000), "s": "x".repeat(1000)});
    let quadratic = "${params.l.map(a, params.l.map(b, a * b))}";
    assert_eq!(bomb(quadratic, &params), Err(ExprError::TooCostly));
    assert_eq!(
        bomb(
            "${params.l.filter(a, params.l.exists(b, b == a + 99999))}",
            &params
        ),
        Err(ExprError::TooCostly)
    );
    assert_eq!(
        bomb("${params.l.filter(a, params.l.contains(a + 99999))}", &params),
        Err(ExprError::TooCostly)
    );
    assert_eq!(
        bomb("${params.l.all(a, params.l == params.l)}", &params),
        Err(ExprError::TooCostly)
    );
    assert_eq!(
        bomb("${params.l.map(a, params.l)}", &params),
        Err(ExprError::ResultTooLarge)
    );
    assert_eq!(
        bomb("${params.l.map(a, params.s)}", &params),
        Err(ExprError::ResultTooLarge)
    );
    assert_eq!(
        bomb(
            "${params.l.all(a, params.s.matches('(x+x+)+y' + string(a)) || true)}",
            &params
        ),
        Err(ExprError::TooCostly)
    );
    let doubling = format!(
        "${{params.l.map(a, params.s.replace('x', params.s){})}}",
        ".replace('x', params.s)".repeat(3)
    );
    assert_eq!(bomb(&doubling, &params), Err(ExprError::TooCostly));
    let huge = "${'x'.matches('((a{1,100}){1,100}){1,100}')}";
    assert!(matches!(bomb(huge, &params), Err(ExprError::Evaluation(_))));
}

#[test]
fn a_list_of_the_largest_size_can_be_mapped() {
    let params = json!({"l": numbers(44_000)});
    let mapped = bomb("${params.l.filter(x, x % 2 == 0).map(x, x / 2)}", &params).unwrap();
    assert_eq!(mapped.as_array().unwrap().len(), 22_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
        let _result = TextTemplate::parse(&text, Variables::Item);
        let _result = references(&text, Variables::Item);
    }

    #[test]
    fn no_tokens_make_it_panic(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..14)) {
        let text = tokens.concat();
        let _result = evaluate(&json!(format!("${{{text}}}")));
        let _result = evaluate(&json!(text));
    }

    #[test]
    fn text_without_a_dollar_stays_as_it_is(text in "[^$]{0,60}") {
        prop_assert_eq!(evaluate(&json!(text)), Ok(json!(text)));
    }

    /// Without `$$`, since `$${` is the only escape and a `$` before it stays.
    #[test]
    fn an_escaped_text_comes_out_as_it_was(pieces in prop::collection::vec(prop::sample::select(vec!["a", "$ ", "${", "}", " "]), 0..20)) {
        let text = pieces.concat();
        prop_assert_eq!(evaluate(&json!(text.replace("${", "$${"))), Ok(json!(text)));
    }
}

const TOKENS: [&str; 52] = [
    "params",
    "tasks",
    "item",
    "index",
    "run",
    ".",
    "split",
    "output",
    "rows",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "${",
    "'",
    "\"",
    "'a'",
    "'''",
    "r'",
    "\\",
    "0",
    "1",
    "1.5",
    "-",
    "+",
    "*",
    "/",
    "//",
    "%",
    "==",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    "?",
    ":",
    ",",
    " ",
    "map(x, ",
    "filter(x, ",
    "has(",
    "in",
    "size(",
    "1u",
    "b'",
    "x",
    "null",
    "\n",
    "9223372036854775808",
];

#[test]
fn templates_and_scopes_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Template>();
    shared::<Expression>();
    shared::<RunScope<'static>>();
    shared::<TemplateError>();
}
