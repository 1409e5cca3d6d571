package check

import (
	"errors"
	"fmt"
	"strings"

	"agentrun.dev/e2e/cluster/internal/life"
)

const account = "system:serviceaccount:" + namespace + ":sandbox"

func (s *suite) partsAlive() error {
	if lost := life.EndedParts(s.settings); lost != "" {
		return errors.New(lost)
	}
	_, err := s.kubectl("get", "--raw", "/readyz")
	return err
}

func (s *suite) makeNamespace() error {
	steps := [][]string{
		{"delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s"},
		{"create", "namespace", namespace},
		{"label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"},
		{"create", "serviceaccount", "sandbox"},
		// A Pod made before the default account exists is refused.
		{"wait", "--for=create", "serviceaccount/default", "--timeout=30s"},
	}
	for _, step := range steps {
		if _, err := s.kubectl(step...); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) refusePrivileged() error {
	_, err := s.kubectl("run", "bad", "--image=localhost/busybox:1", "--restart=Never", "--dry-run=server", "--privileged")
	return refusedWith(err, `violates PodSecurity "restricted`)
}

// refuseBlockingOwner tries with and without blockOwnerDeletion: only the first is refused.
func (s *suite) refuseBlockingOwner() error {
	if err := s.apply("owner.yaml", nil); err != nil {
		return err
	}
	owner, err := s.kubectl("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return err
	}
	if err := s.createOwned(owner, true); err == nil || !strings.Contains(err.Error(), "cannot set blockOwnerDeletion") {
		return refusedWith(err, "cannot set blockOwnerDeletion")
	}
	return s.createOwned(owner, false)
}

func (s *suite) createOwned(owner string, block bool) error {
	text, err := fill("owned.yaml", map[string]any{"Owner": owner, "Block": block})
	if err != nil {
		return err
	}
	_, err = s.kubectlWith(text, "create", "--as="+account, "--dry-run=server", "-f", "-")
	return err
}

func refusedWith(err error, want string) error {
	switch {
	case err == nil:
		return errors.New("it was admitted")
	case !strings.Contains(err.Error(), want):
		return fmt.Errorf("refused for another reason than %q: %w", want, err)
	}
	return nil
}

func (s *suite) reviewToken() error {
	token, err := s.kubectl("create", "token", "sandbox", "--audience=check")
	if err != nil {
		return err
	}
	return s.tokenHolds(token)
}

// tokenHolds asks the API server about a token with the audience "check".
func (s *suite) tokenHolds(token string) error {
	for audience, want := range map[string]string{"check": "true " + account, "https://kubernetes.default.svc": " "} {
		text, err := fill("review.yaml", map[string]any{"Token": token, "Audience": audience})
		if err != nil {
			return err
		}
		got, err := s.kubectlWith(text, "create", "-o", "jsonpath={.status.authenticated} {.status.user.username}", "-f", "-")
		if err != nil {
			return err
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			return fmt.Errorf("for audience %q the review says %q, not %q", audience, got, want)
		}
	}
	return nil
}

func (s *suite) allGone() error {
	if _, err := s.kubectl("delete", "namespace", namespace, "--timeout=90s"); err != nil {
		return err
	}
	if _, err := s.kubectl("wait", "--for=delete", "persistentvolume", "--all", "--timeout=60s"); err != nil {
		return err
	}
	left, err := s.kubectl("get", "persistentvolume", "-o", "name")
	if err == nil && left != "" {
		err = fmt.Errorf("left: %s", left)
	}
	return err
}

// dropNamespace cleans up after a failed check too, and does not wait for it.
func (s *suite) dropNamespace() {
	_, _ = s.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
}
