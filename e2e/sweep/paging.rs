//! Lists of more than one page.

use agentrun_api::{Thread, ThreadSpec};
use agentrun_operator::cache::{Cache, fill};
use agentrun_operator::health::Watches;
use agentrun_testkit::cluster::Namespace;
use futures::StreamExt as _;
use kube::Api;
use std::time::Duration;

/// A page of a watch's first list has 500.
const OBJECTS: usize = 1_050;

// F091
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_has_as_many_objects_as_the_cluster_when_they_are_more_than_one_page() {
    let namespace = Namespace::new("paging").await;
    let threads = futures::stream::iter(0..OBJECTS).map(|number| {
        let namespace = namespace.clone();
        async move {
            let spec = ThreadSpec {
                user: "u".into(),
                thread: format!("t{number}"),
                ..ThreadSpec::default()
            };
            namespace.create(&Thread::new(&format!("t-{number}"), spec)).await;
        }
    });
    threads.buffer_unordered(32).collect::<()>().await;
    let (cache, writer) = Cache::<Thread>::new(|thread| vec![thread.spec.user.clone()]);
    let api = Api::namespaced(namespace.client.clone(), &namespace.name);
    let filling = fill(
        "threads",
        api,
        None,
        cache.clone(),
        writer,
        Watches::default(),
        |_| {},
    );
    let filled = async {
        let all = async || (cache.all().len() >= OBJECTS).then_some(());
        namespace
            .wait_for("all objects in the cache", Duration::from_mins(1), all)
            .await;
        assert_eq!(cache.all().len(), namespace.list::<Thread>().await.len());
        assert_eq!(cache.under("u").len(), OBJECTS);
        assert!(cache.get(&namespace.name, "t-1049").is_some());
    };
    tokio::select! {
        () = filling => panic!("the watch has ended"),
        () = filled => {}
    }
    namespace.give_back().await;
}
