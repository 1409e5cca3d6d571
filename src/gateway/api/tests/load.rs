//! Many readers of one run, some of which take nothing.

use super::*;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

const READERS: usize = 1_000;
const STALLED: usize = READERS / 5;
/// Sub-tasks that end in one round; each brings about 2 KB.
const ROUND: usize = 100;
const ROUNDS: usize = 4;
/// Long enough for readers that share a busy machine's cores with everything else here.
const STALL: Duration = Duration::from_secs(15);
/// What the process may grow while three quarters of the events are told. Queues for the stalled ones alone would be
/// 120 MB.
const GROWTH: usize = 48 * 1024 * 1024;

async fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut socket = within(socket.connect(address)).await.unwrap();
    let request = b"GET /api/tasks/run-1/stream HTTP/1.1\r\nauthorization: Bearer lena\r\n\r\n";
    socket.write_all(request).await.unwrap();
    socket
}

/// Reads to the end; returns how many events came. Their numbers must be without a hole.
async fn read(socket: TcpStream, heard: Arc<AtomicUsize>) -> usize {
    let mut lines = BufReader::new(socket).lines();
    let mut count = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(id) = line.strip_prefix("id: ") {
            count += 1;
            assert_eq!(id.split('-').next().unwrap(), count.to_string());
            heard.fetch_add(1, Ordering::Relaxed);
        }
        if line.contains("\"type\":\"done\"") {
            return count;
        }
    }
    panic!("the stream ended before done");
}

fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn run(phase: &str) -> Value {
    json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "run-1", "namespace": "team-a", "uid": "run-uid"},
        "spec": {"tasks": [{"name": "build", "command": {"argv": ["true"]}}]},
        "status": {"phase": phase},
    })
}

fn ended(number: usize) -> Value {
    json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
        "metadata": {"name": format!("st-{number}"), "namespace": "team-a", "uid": format!("uid-{number}"),
            "labels": {"agentrun.dev/run-uid": "run-uid"}},
        "spec": {"runRef": {"name": "run-1", "uid": "run-uid"}, "task": "build", "role": "Task", "command": {"argv": ["true"]}},
        "status": {"phase": "Finished", "outcome": "Error", "message": "x".repeat(1_800)},
    })
}

// F131
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_hear_everything_while_a_fifth_takes_nothing_and_memory_stays_flat() {
    let stage = Stage::new();
    stage.fake.put(&run("Running"));
    let address = stage
        .listen(server::Patience {
            stall: STALL,
            ..server::Patience::default()
        })
        .await;
    let heard = Arc::new(AtomicUsize::new(0));
    let (mut readers, mut stalled) = (Vec::new(), Vec::new());
    for number in 0..READERS {
        let socket = connect(address).await;
        if number % 5 == 0 {
            stalled.push(socket);
        } else {
            readers.push(tokio::spawn(read(socket, Arc::clone(&heard))));
        }
    }
    let everybody = |events: usize| {
        let (heard, readers) = (Arc::clone(&heard), readers.len());
        async move {
            let all = async {
                while heard.load(Ordering::Relaxed) < events * readers {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_mins(2), all)
                .await
                .expect("a reader lost an event");
        }
    };
    everybody(1).await;
    let connected = memory();
    let mut first = 0;
    let began = std::time::Instant::now();
    for round in 0..ROUNDS {
        for number in round * ROUND..(round + 1) * ROUND {
            stage.see(&ended(number));
        }
        everybody(1 + 2 * (round + 1) * ROUND).await;
        if round == 0 {
            first = memory();
        }
    }
    let (last, told) = (memory(), began.elapsed());
    let events = 2 + 2 * ROUNDS * ROUND;
    stage.see(&run("Succeeded"));
    for reader in readers {
        assert_eq!(
            tokio::time::timeout(Duration::from_mins(1), reader)
                .await
                .unwrap()
                .unwrap(),
            events
        );
    }
    let mib = |bytes: usize| bytes / 1024 / 1024;
    println!(
        "{READERS} readers, {STALLED} stalled, {events} events each in {told:?}: {} MiB connected, {} MiB after the first quarter, {} MiB after all",
        mib(connected),
        mib(first),
        mib(last)
    );
    assert!(
        last.saturating_sub(first) < GROWTH,
        "grew from {first} to {last} bytes"
    );
    // The stalled ones are cut off by the timer beside their connections.
    let cut = &stage.api.metrics.stalled;
    let gone = async {
        while cut.get() < STALLED as u64 || stage.api.metrics.streams.get() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = tokio::time::timeout(STALL * 4, gone).await;
    assert!(gone.is_ok(), "{} of {STALLED} were cut off", cut.get());
    drop(stalled);
}
