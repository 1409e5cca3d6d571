//! A Pod that reads a skill.

use crate::world::World;
use agentrun_protocol::channel::ToGateway;
use agentrun_protocol::exit;
use agentrun_protocol::inspection::SkillFound;
use agentrun_protocol::work::AttemptId;
use agentrun_runtime::inspect::{Inspection, inspect};

#[tokio::test]
async fn a_skill_is_reported_until_that_is_acknowledged() {
    let mut world = World::new().await;
    let folder = world.path("skills");
    std::fs::write(
        folder.join("SKILL.md"),
        "---\nname: math\ndescription: Adds.\n---\n",
    )
    .unwrap();
    let id = AttemptId {
        uid: "sub-task-uid".to_owned(),
        attempt: 1,
    };
    let inspection = Inspection {
        gateway: world.settings.gateway.clone(),
        id: id.clone(),
        folder,
    };
    let inspecting = tokio::spawn(inspect(inspection, std::future::pending()));
    let mut peer = world.gateway.peer().await;
    let ToGateway::Skill { id: of, found } = peer.next().await else {
        panic!("expected the skill");
    };
    assert_eq!(of, id);
    assert!(matches!(found, SkillFound::Valid { name, .. } if name == "math"));
    peer.ack().await;
    assert_eq!(inspecting.await.unwrap().unwrap(), exit::DONE);
}
