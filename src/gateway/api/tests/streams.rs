use super::*;
use crate::board::Name;
use serde_json::json;
use std::collections::VecDeque;

/// A reader of a stream.
struct Reader {
    body: Body,
    text: String,
    waiting: VecDeque<(Option<String>, Value)>,
}

impl Reader {
    async fn open(stage: &Stage, last: Option<&str>) -> Self {
        let headers: Vec<_> = last.map(|last| ("last-event-id", last)).into_iter().collect();
        let path = "/api/namespaces/team-a/tasks/run-1/stream";
        let response = stage.send(request("GET", path, "lena", &headers, "")).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            body: response.into_body(),
            text: String::new(),
            waiting: VecDeque::new(),
        }
    }

    /// The next event, `None` at the end.
    async fn next(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let frame = within(self.body.frame()).await?.unwrap();
            self.text
                .push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            while let Some((block, rest)) = self.text.clone().split_once("\n\n") {
                rest.clone_into(&mut self.text);
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                if let Some(data) = field("data: ") {
                    self.waiting
                        .push_back((field("id: "), serde_json::from_str(&data).unwrap()));
                }
            }
        }
    }

    async fn event(&mut self) -> Value {
        self.next().await.expect("the stream ended").1
    }

    async fn all(&mut self) -> Vec<(Option<String>, Value)> {
        let mut all = Vec::new();
        let reading = async {
            while let Some(event) = self.next().await {
                all.push(event);
            }
        };
        within(reading).await;
        all
    }
}

/// An event in a few letters.
fn short(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    match event["type"].as_str().unwrap() {
        "subagent" => {
            format!("{} {} {}", text("name"), text("status"), event["attempt"]).replace(" null", "")
        }
        "artifact" => text("path"),
        "done" => format!("done {} {}", text("status"), event["outputs"]),
        other => other.to_owned(),
    }
}

fn shorts(events: &[(Option<String>, Value)]) -> Vec<String> {
    events.iter().map(|(_, event)| short(event)).collect()
}

fn run(change: impl FnOnce(&mut Value)) -> Value {
    let mut run = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "run-1", "namespace": "team-a", "uid": "run-uid", "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"tasks": [{"name": "build", "command": {"argv": ["true"]}}, {"name": "test", "command": {"argv": ["true"]}}]},
        "status": {"phase": "Running"},
    });
    change(&mut run);
    run
}

fn subtask(task: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut subtask = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
        "metadata": {"name": format!("st-{task}"), "namespace": "team-a", "uid": format!("uid-{task}"),
            "creationTimestamp": "2030-01-01T00:00:01Z", "labels": {"agentrun.dev/run-uid": "run-uid"}},
        "spec": {"runRef": {"name": "run-1", "uid": "run-uid"}, "task": task, "role": "Task", "command": {"argv": ["true"]}},
    });
    change(&mut subtask);
    subtask
}

fn running(task: &str, second: u32) -> Value {
    subtask(task, |o| {
        let started = format!("2030-01-01T00:00:{second:02}.000000Z");
        o["status"] = json!({"phase": "Running", "attempts": [{"number": 1, "started": started}]});
    })
}

fn ended(task: &str, second: u32, outcome: &str) -> Value {
    let mut ended = running(task, second);
    let finished = format!("2030-01-01T00:00:{second:02}.500000Z");
    ended["status"]["attempts"][0]["finished"] = json!(finished);
    ended["status"]["phase"] = json!("Finished");
    ended["status"]["outcome"] = json!(outcome);
    ended["status"]["reason"] = json!("Completed");
    ended["status"]["artifacts"] =
        json!([{"path": format!("/mnt/user-data/outputs/{task}"), "bytes": 1, "sha256": "00"}]);
    ended
}

fn over(phase: &str) -> Value {
    run(|o| {
        o["status"] = json!({"phase": phase, "output": {"n": 1}, "completionTime": "2030-01-01T00:01:00.000000Z",
            "artifacts": [{"path": "/mnt/user-data/outputs/build", "bytes": 1, "sha256": "00"}]});
    })
}

const STORY: [&str; 10] = [
    "plan",
    "build task_started",
    "build task_running 1",
    "/mnt/user-data/outputs/build",
    "build task_completed 1",
    "test task_started",
    "test task_running 1",
    "/mnt/user-data/outputs/test",
    "test task_completed 1",
    "done Succeeded {\"n\":1}",
];

async fn live_story(stage: &Stage) -> Reader {
    stage.fake.put(&run(|_| ()));
    let reader = Reader::open(stage, None).await;
    stage.see(&subtask("build", |_| ()));
    stage.see(&running("build", 2));
    stage.see(&ended("build", 2, "Success"));
    // An old sighting brings nothing.
    stage
        .gateway
        .sightings
        .subtask(&serde_json::from_value(running("build", 2)).unwrap());
    stage.see(&subtask("test", |o| {
        o["metadata"]["creationTimestamp"] = json!("2030-01-01T00:00:03Z");
    }));
    let later = |mut object: Value| {
        object["metadata"]["creationTimestamp"] = json!("2030-01-01T00:00:03Z");
        object
    };
    stage.see(&later(running("test", 4)));
    stage.see(&later(ended("test", 4, "Success")));
    stage.see(&over("Succeeded"));
    reader
}

#[tokio::test]
async fn a_reader_follows_a_run_from_plan_to_done_and_a_late_one_hears_the_same() {
    let stage = Stage::new();
    let mut reader = live_story(&stage).await;
    let heard = reader.all().await;
    assert_eq!(shorts(&heard), STORY);
    let mut late = Reader::open(&stage, None).await;
    assert_eq!(late.all().await, heard);
    drop((reader, late));
    let other = Stage::on(&stage.fake);
    let elsewhere = Reader::open(&other, None).await.all().await;
    assert_eq!(
        elsewhere, heard,
        "another gateway that derives it from the objects says the same"
    );
    let steps = &heard[0].1["steps"];
    assert_eq!(steps[0], json!({"name": "build", "kind": "command"}));
    assert_eq!(heard[4].1["id"], "st-build");
}

// F127
#[tokio::test]
async fn a_reader_that_comes_back_hears_the_rest_without_loss_or_repetition() {
    let stage = Stage::new();
    let heard = live_story(&stage).await.all().await;
    for place in 0..heard.len() - 1 {
        for gateway in [&stage, &Stage::on(&stage.fake)] {
            let rest = Reader::open(gateway, heard[place].0.as_deref()).await.all().await;
            assert_eq!(rest, heard[place + 1..]);
        }
    }
    let last = heard.last().unwrap().0.as_deref().unwrap();
    let path = "/api/tasks/run-1/stream";
    let response = stage
        .send(request("GET", path, "lena", &[("last-event-id", last)], ""))
        .await;
    assert_eq!(
        response.status(),
        204,
        "an EventSource does not come back after that"
    );
}

#[tokio::test]
async fn an_id_that_says_nothing_here_gives_a_gap_and_then_everything() {
    let stage = Stage::new();
    live_story(&stage).await.all().await;
    for last in ["5-0123456789abcdef", "9999-0123456789abcdef", "x"] {
        let heard = Reader::open(&stage, Some(last)).await.all().await;
        assert_eq!((heard[0].0.as_ref(), &heard[0].1["type"]), (None, &json!("gap")));
        assert_eq!(shorts(&heard[1..]), STORY);
    }
}

#[tokio::test]
async fn every_end_has_its_word_and_a_run_that_fails_says_why() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let outcomes = [
        ("a", "Error", "task_failed"),
        ("b", "ParseError", "task_failed"),
        ("c", "Timeout", "task_timed_out"),
        ("d", "Cancelled", "task_cancelled"),
        ("e", "Skipped", "task_cancelled"),
    ];
    let mut reader = Reader::open(&stage, None).await;
    for (task, outcome, _) in outcomes {
        stage.see(&subtask(task, |o| {
            o["status"] = json!({"phase": "Finished", "outcome": outcome, "message": "why"});
        }));
    }
    stage.see(&run(|o| {
        o["status"] = json!({"phase": "Failed", "reason": "TaskFailed", "conditions": [{"type": "Failed", "status": "True",
            "reason": "TaskFailed", "message": "task a failed", "lastTransitionTime": "2030-01-01T00:00:00Z"}]});
    }));
    let heard = reader.all().await;
    for (task, outcome, status) in outcomes {
        let event = heard
            .iter()
            .find(|(_, it)| it["name"] == task && it["outcome"] != Value::Null)
            .unwrap();
        assert_eq!(
            (&event.1["status"], &event.1["outcome"]),
            (&json!(status), &json!(outcome))
        );
        assert_eq!(event.1["message"], "why");
    }
    let [.., error, done] = &heard[..] else { panic!() };
    assert_eq!(
        error.1,
        json!({"type": "error", "code": "TaskFailed", "message": "task a failed"})
    );
    assert_eq!(
        done.1,
        json!({"type": "done", "status": "Failed", "outputs": null})
    );
}

#[tokio::test]
async fn the_ends_of_sub_tasks_come_before_done_although_their_watch_is_late() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    stage.see(&running("build", 2));
    stage.fake.put(&ended("build", 2, "Success"));
    stage.see(&over("Succeeded"));
    assert_eq!(shorts(&reader.all().await), [&STORY[..5], &STORY[9..]].concat());
}

#[tokio::test]
async fn a_late_reader_does_not_hear_of_work_before_the_end_that_it_waited_for_in_the_same_second() {
    let stage = Stage::new();
    let at = |task: &str, started: &str, finished: &str| {
        let mut it = ended(task, 1, "Success");
        it["status"]["artifacts"] = json!([]);
        it["status"]["attempts"][0]["started"] = json!(format!("2030-01-01T00:00:01.{started}Z"));
        it["status"]["attempts"][0]["finished"] = json!(format!("2030-01-01T00:00:01.{finished}Z"));
        it
    };
    stage.fake.put(&over("Succeeded"));
    stage.fake.put(&at("a", "500000", "600000"));
    stage.fake.put(&at("z", "200000", "400000"));
    let heard = shorts(&Reader::open(&stage, None).await.all().await);
    let words = ["task_started", "task_running 1", "task_completed 1"];
    let expected = ["z", "a"]
        .map(|task| words.map(|word| format!("{task} {word}")))
        .concat();
    assert_eq!(heard[1..7], expected);
}

#[tokio::test]
async fn attempts_are_told_one_by_one() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    assert_eq!(short(&reader.event().await), "plan");
    let mut again = running("build", 2);
    again["status"]["attempts"] = json!([{"number": 2}, {"number": 1}]);
    stage.see(&again);
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(short(&reader.event().await));
    }
    assert_eq!(
        heard,
        [
            "build task_started",
            "build task_running 1",
            "build task_running 2"
        ]
    );
}

#[tokio::test]
async fn a_run_that_is_deleted_or_replaced_ends_its_stream() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    let name = Name {
        namespace: "team-a".into(),
        name: "run-1".into(),
    };
    stage.gateway.sightings.deleted(&name, "another-uid");
    stage.gateway.sightings.deleted(&name, "run-uid");
    let heard = reader.all().await;
    assert_eq!(shorts(&heard), ["plan", "error"]);
    assert_eq!(heard[1].1["code"], "TaskDeleted");
    // One of the same name is another run, although the old feed is still read.
    stage.fake.put(&run(|o| {
        o["metadata"]["uid"] = json!("new-uid");
        o["status"]["phase"] = json!("Succeeded");
    }));
    let heard = Reader::open(&stage, None).await.all().await;
    assert_eq!(shorts(&heard), ["plan", "done Succeeded null"]);
}

#[tokio::test]
async fn a_run_that_went_while_the_watch_was_down_is_missed_when_it_begins_anew() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    stage.gateway.sightings.begun_anew();
    assert_eq!(short(&reader.event().await), "plan");
    stage.fake.remove_run("team-a", "run-1");
    stage.gateway.sightings.begun_anew();
    assert_eq!(shorts(&reader.all().await), ["error"]);
}

#[tokio::test]
async fn readers_cost_no_request_of_their_own() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut readers = Vec::new();
    for _ in 0..50 {
        readers.push(Reader::open(&stage, None).await);
    }
    let read = "GET /apis/agentrun.dev/v1alpha1/namespaces/team-a/";
    assert_eq!(stage.fake.asked(read), 2, "the run and its sub-tasks");
    assert_eq!(stage.api.metrics.streams.get(), 50);
    stage.see(&running("build", 2));
    stage.see(&over("Succeeded"));
    for reader in &mut readers {
        assert_eq!(short(&reader.all().await.last().unwrap().1), STORY[9]);
    }
    assert_eq!(stage.fake.asked(read), 3, "the sub-tasks at the end");
    assert_eq!(stage.api.metrics.streams.get(), 0);
}

// F128
#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_lives_and_ends_after_its_time() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    let opened = tokio::time::Instant::now();
    let mut beats = 0;
    while let Some(frame) = reader.body.frame().await {
        let bytes = frame.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        beats += usize::from(text == ": heartbeat\n\n");
    }
    assert_eq!(opened.elapsed(), super::super::bounds::STREAM_LIFE);
    assert!((230..=240).contains(&beats), "{beats} heartbeats in an hour");
}

// F130
#[tokio::test]
async fn readers_are_told_to_come_back_at_different_times() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let (shortest, longest) = super::super::bounds::RETRY_MS;
    let mut times = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let mut reader = Reader::open(&stage, None).await;
        let first = within(reader.body.frame())
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap();
        let retry = std::str::from_utf8(&first)
            .unwrap()
            .strip_prefix("retry: ")
            .unwrap()
            .trim();
        times.insert(retry.parse::<u64>().unwrap());
    }
    assert!(
        times.len() > 1 && times.iter().all(|time| (shortest..longest).contains(time)),
        "{times:?}"
    );
}

#[tokio::test]
async fn a_gateway_that_stops_ends_its_streams() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let mut reader = Reader::open(&stage, None).await;
    assert_eq!(short(&reader.event().await), "plan");
    stage.gateway.stop.cancel();
    assert!(reader.next().await.is_none());
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_does_not_spoil_the_feed() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    assert_eq!(stage.get("/api/tasks").await.status, 200);
    let path = "/api/tasks/run-1/stream";
    assert_eq!(stage.get("/api/tasks/run-1").await.status, 200);
    stage.fake.is_down(true);
    assert_eq!(stage.get(path).await.status, 503);
    stage.fake.is_down(false);
    assert_eq!(short(&Reader::open(&stage, None).await.event().await), "plan");
}

#[tokio::test]
async fn a_namespace_has_so_many_streams_and_no_more() {
    let stage = Stage::new();
    stage.fake.put(&run(|_| ()));
    let places: Vec<_> = (0..super::super::bounds::STREAMS)
        .map(|_| {
            stage
                .api
                .feeds
                .place("team-a", &stage.api.metrics.streams)
                .unwrap()
        })
        .collect();
    let answer = stage.get("/api/tasks/run-1/stream").await;
    assert_eq!(answer.status, 429);
    assert!(answer.headers.contains_key("retry-after"));
    stage
        .api
        .feeds
        .place("team-b", &stage.api.metrics.streams)
        .unwrap();
    drop(places);
    Reader::open(&stage, None).await;
}
