use super::*;

fn rule(name: &str, cidr: &str, port: i32) -> EgressRule {
    EgressRule {
        name: name.to_owned(),
        cidr: cidr.to_owned(),
        port,
        protocol: None,
    }
}

fn denied() -> Denied {
    Denied::new(
        ["10.96.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()],
        &["203.0.113.0/24".parse().unwrap()],
    )
}

fn gateway() -> GatewayPods {
    GatewayPods {
        namespace: "agentrun-system".to_owned(),
        labels: BTreeMap::from([("app.kubernetes.io/component".to_owned(), "gateway".to_owned())]),
        port: IntOrString::Int(8443),
    }
}

fn build(egress: &[EgressRule]) -> Result<NetworkPolicy, EgressError> {
    build_policy("team-a", egress, &gateway(), &denied())
}

#[test]
fn a_sandbox_without_egress_reaches_the_gateways_pods_alone() {
    insta::assert_yaml_snapshot!(build(&[]).unwrap());
}

#[test]
fn wider_networks_leave_out_what_nobody_gets() {
    let policy = build(&[
        rule("db", "192.0.2.5/32", 5432),
        rule("any", "0.0.0.0/0", 443),
        rule("six", "::/0", 443),
    ]);
    insta::assert_yaml_snapshot!(policy.unwrap());
}

// F108
#[test]
fn every_policy_denies_ingress_and_closes_egress() {
    for egress in [vec![], vec![rule("db", "192.0.2.5/32", 5432)]] {
        let spec = build(&egress).unwrap().spec.unwrap();
        assert_eq!(spec.policy_types.unwrap(), ["Ingress", "Egress"]);
        assert_eq!(spec.ingress, None);
        let open = |rule: &NetworkPolicyEgressRule| {
            rule.to.iter().flatten().next().is_none() || rule.ports.is_none()
        };
        assert!(!spec.egress.unwrap().iter().any(open));
    }
}

// F105
#[test]
fn what_nobody_gets_is_refused_with_the_entrys_name() {
    let cases = [
        ("127.0.0.1/32", "loopback"),
        ("169.254.169.254/32", "metadata"),
        ("fe80::1/128", "link-local"),
        ("10.96.0.1/32", "the API server"),
        ("203.0.113.0/24", "--egress-deny"),
        ("203.0.113.7/32", "--egress-deny"),
        ("::ffff:10.96.0.1/128", "IPv4 addresses in IPv6 form"),
        ("0.0.0.0/32", "this host"),
    ];
    for (cidr, why) in cases {
        let text = build(&[rule("sneaky", cidr, 443)]).unwrap_err().to_string();
        assert!(
            text.contains("egress[sneaky]") && text.contains(why),
            "{cidr}: {text}"
        );
    }
}

#[test]
fn unclear_networks_are_refused_with_the_fix() {
    let text = |cidr| build(&[rule("db", cidr, 1)]).unwrap_err().to_string();
    assert!(text("192.0.2.5").contains("192.0.2.5/32"));
    assert!(text("db.example.com").contains("is no network"));
    assert!(text("10.1.2.3/8").contains("write 10.0.0.0/8"));
}

#[test]
fn names_and_order_of_rules_do_not_make_another_set() {
    let one = [rule("a", "192.0.2.5/32", 1), rule("b", "192.0.2.6/32", 2)];
    let other = [rule("x", "192.0.2.6/32", 2), rule("y", "192.0.2.5/32", 1)];
    assert_eq!(policy_name(&one), policy_name(&other));
    assert_ne!(policy_name(&one), policy_name(&one[..1]));
    assert_eq!(
        policy_name(&one),
        format!("agentrun-egress-{}", egress_hash(&one))
    );
    assert_eq!(egress_hash(&one).len(), 10);
}

#[test]
fn only_what_the_set_opens_is_no_target_of_the_probe() {
    let egress = [rule("any", "0.0.0.0/0", 443)];
    let permits = |target: &str| permits(&egress, &denied(), target.parse().unwrap());
    assert!(permits("192.0.2.1:443"));
    assert!(!permits("192.0.2.1:8444"));
    assert!(!permits("10.96.0.1:443"));
    assert!(!permits("169.254.169.254:443"));
}
