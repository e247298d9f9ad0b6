package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// TestKrewDescription: each command that the description for krew names exists, and the description
// names each command with a flag that only commands which write have.
func TestKrewDescription(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Krews []struct{ Description string }
	}
	if err := yaml.Unmarshal(text, &config); err != nil || len(config.Krews) != 1 {
		t.Fatalf("%v, %d manifests for krew", err, len(config.Krews))
	}
	named := map[string]bool{}
	// A line of the list has commands, two spaces and more, and the objects that they write.
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z].*?)(?:  .*)?$`).FindAllStringSubmatch(config.Krews[0].Description, -1) {
		for one := range strings.SplitSeq(line[1], ", ") {
			named[one] = true
		}
	}
	for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(config.Krews[0].Description, -1) {
		named[quoted[1]] = true
	}
	if len(named) < 10 {
		t.Errorf("the description names the commands %v, which are too few", named)
	}
	root := newCommand()
	found := map[string]bool{}
	for one := range named {
		path, flag, _ := strings.Cut(one, " --")
		command, rest, err := root.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || flag != "" && command.Flags().Lookup(flag) == nil {
			t.Errorf("there is no command %q: %v", one, err)
		}
		found[path] = true
	}
	var walk func(*cobra.Command, string)
	walk = func(command *cobra.Command, path string) {
		for _, flag := range []string{"apply", "yes", "dry-run"} {
			if command.Flags().Lookup(flag) != nil && !found[path] {
				t.Errorf("%q has --%s, and the description does not name it", path, flag)
			}
		}
		for _, below := range command.Commands() {
			walk(below, strings.TrimSpace(path+" "+below.Name()))
		}
	}
	walk(root, "")
}
