package settings

import (
	"strings"
	"testing"
)

func from(values map[string]string) (Settings, error) {
	return FromEnv(func(name string) string { return values[name] })
}

func TestDefaultsComeFromHome(t *testing.T) {
	s, err := from(map[string]string{"HOME": "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Cache: "/home/me/.cache/agentrun/cluster", State: "/run/agentrun-cluster", Port: 16443}
	if s != want {
		t.Fatalf("got %+v, want %+v", s, want)
	}
}

func TestTheStateFolderNamesTheCgroup(t *testing.T) {
	s, err := from(map[string]string{"CLUSTER_STATE": "/run/other/second/", "CLUSTER_PORT": "16444"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "second" || s.Port != 16444 {
		t.Fatalf("got name %q and port %d", s.Name(), s.Port)
	}
}

func TestSettingsSurviveTheWayThroughTheEnvironment(t *testing.T) {
	s := Settings{Cache: "/a", State: "/b/c", Port: 9}
	values := map[string]string{}
	for _, line := range s.Env() {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	if again, err := from(values); err != nil || again != s {
		t.Fatalf("got %+v, %v", again, err)
	}
}

func TestUnusableSettingsAreNamed(t *testing.T) {
	for variable, value := range map[string]string{
		"CLUSTER_PORT":  "65536",
		"CLUSTER_STATE": "relative",
		"CLUSTER_CACHE": "/with space",
	} {
		if _, err := from(map[string]string{variable: value}); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: got %v", variable, value, err)
		}
	}
	if _, err := from(map[string]string{"CLUSTER_STATE": "/"}); err == nil {
		t.Error("the root folder was accepted as a state folder")
	}
}
