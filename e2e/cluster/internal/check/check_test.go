package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAReportIsComparedKeyByKey(t *testing.T) {
	got := parseReport("uid 0\nnoise\nkubelet no\n")
	if d := got.differences(report{"kubelet": "no"}); len(d) > 0 {
		t.Errorf("a match differs: %v", d)
	}
	want := []string{`missing is "", not "yes"`, `uid is "0", not "65532"`}
	if d := got.differences(report{"uid": "65532", "missing": "yes"}); !slices.Equal(d, want) {
		t.Errorf("got %v", d)
	}
}

func TestNoReportProvesNothing(t *testing.T) {
	s := &suite{reports: map[string]report{}}
	if err := says("closed", onlyGateway())(s); err == nil {
		t.Fatal("a Pod that never spoke passed")
	}
}

func TestOnlyTheExpectedRefusalCounts(t *testing.T) {
	if refusedWith(nil, "x") == nil || refusedWith(errors.New("y"), "x") == nil {
		t.Error("passed without the refusal")
	}
	if err := refusedWith(errors.New("because x"), "x"); err != nil {
		t.Error(err)
	}
}

func TestEveryFileRendersAndAMissingValueIsAnError(t *testing.T) {
	values := map[string]any{
		"Servers": []string{"a"}, "Name": "n", "Gateway": "1", "Neighbour": "2", "Skills": "s", "Script": `! "x"`,
		"Owner": "o", "Block": true, "Token": "t", "Audience": "a",
	}
	entries, err := files.ReadDir("files")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := fill(entry.Name(), values)
		if err != nil || strings.Contains(text, "{{") {
			t.Errorf("%s: %v", entry.Name(), err)
		}
	}
	if _, err := fill("job.yaml", nil); err == nil {
		t.Error("a job without a name was rendered")
	}
}
