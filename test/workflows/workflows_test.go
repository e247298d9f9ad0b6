// Package workflows_test holds .github against the rest of the checkout.
package workflows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		TimeoutMinutes int `json:"timeout-minutes"`
		Steps          []struct {
			Run  string `json:"run"`
			Uses string `json:"uses"`
		} `json:"steps"`
	} `json:"jobs"`
}

// workflows are all there are, by their file.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]workflow{}
	for _, file := range files {
		var parsed workflow
		if err := yaml.Unmarshal(read(t, file), &parsed); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = parsed
	}
	if len(found) == 0 {
		t.Fatal("there is no workflow")
	}
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// targets are those of the Makefile.
func targets(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):(?:[^=]|$)`).FindAllSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		found = append(found, string(match[1]))
	}
	return found
}

var (
	// command is a call of make with one target and variables.
	command = regexp.MustCompile(`^make ([a-z0-9-]+)( [A-Z_]+=\S+)*$`)
	// pinned is an action by the digest of its commit.
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
)

// What a workflow does works everywhere, and what it takes from others cannot change.
func TestSteps(t *testing.T) {
	t.Parallel()
	known := targets(t)
	for file, workflow := range workflows(t) {
		for name, job := range workflow.Jobs {
			runs := 0
			for _, step := range job.Steps {
				match := command.FindStringSubmatch(step.Run)
				switch {
				case step.Run == "" && !pinned.MatchString(step.Uses):
					t.Errorf("%s, %s: the action %q is not pinned by a digest", file, name, step.Uses)
				case step.Run != "" && (match == nil || !slices.Contains(known, match[1])):
					t.Errorf("%s, %s: %q calls no target of the Makefile", file, name, step.Run)
				}
				runs += len(match)
			}
			if runs == 0 && file != "scorecard.yml" {
				t.Errorf("%s, %s: no target of the Makefile is called", file, name)
			}
		}
	}
}

// TestVersions: a digest tells no reader its version, so that each line with an action names it.
func TestVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil {
		t.Fatal(err)
	}
	versioned := regexp.MustCompile(`@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+(, not v[0-9.]+: see dependabot\.yml)?$`)
	for _, file := range files {
		for line := range strings.Lines(string(read(t, file))) {
			if line = strings.TrimSpace(line); strings.Contains(line, "uses: ") && !versioned.MatchString(line) {
				t.Errorf("%s: no version is named beside %q", filepath.Base(file), line)
			}
		}
	}
}

// TestRelease: the release workflow verifies a release, makes its OpenVEX document, and then
// publishes, so that a step that fails publishes nothing.
func TestRelease(t *testing.T) {
	t.Parallel()
	var got []string
	for _, step := range workflows(t)["release.yml"].Jobs["release"].Steps {
		if step.Run != "" {
			got = append(got, step.Run)
		}
	}
	if diff := cmp.Diff([]string{"make release-check", "make vex", "make release-publish"}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// Nothing may write unless its job says so, and every job ends.
func TestBounds(t *testing.T) {
	t.Parallel()
	for file, workflow := range workflows(t) {
		if diff := cmp.Diff(map[string]string{"contents": "read"}, workflow.Permissions); diff != "" {
			t.Errorf("%s: permissions (-want +got):\n%s", file, diff)
		}
		for name, job := range workflow.Jobs {
			if job.TimeoutMinutes == 0 {
				t.Errorf("%s, %s: there is no bound in time", file, name)
			}
		}
	}
}

// Each module is kept up to date, and tidy.
func TestModules(t *testing.T) {
	t.Parallel()
	var dependabot struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(root, ".github/dependabot.yml")), &dependabot); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, update := range dependabot.Updates {
		if update.Ecosystem == "gomod" {
			got = append(got, update.Directories...)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(modules(t), got); diff != "" {
		t.Errorf("modules that are kept up to date (-want +got):\n%s", diff)
	}
	line := regexp.MustCompile(`(?m)^MODULES := (.*)$`).FindSubmatch(read(t, filepath.Join(root, "Makefile")))
	if line == nil {
		t.Fatal("the Makefile has no MODULES")
	}
	tidy := []string{}
	for module := range strings.FieldsSeq(string(line[1])) {
		tidy = append(tidy, "/"+strings.TrimPrefix(module, "."))
	}
	slices.Sort(tidy)
	if diff := cmp.Diff(modules(t), tidy); diff != "" {
		t.Errorf("modules that are kept tidy (-want +got):\n%s", diff)
	}
}

// modules returns the folders with a go.mod, sorted. It leaves out hack/kubernetes, which pins
// old releases on purpose.
func modules(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folder, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			if folder != "hack/kubernetes" {
				found = append(found, "/"+strings.TrimPrefix(folder, "."))
			}
		}
	}
	slices.Sort(found)
	return found
}

// Owners are teams, of folders and files that there are.
func TestOwners(t *testing.T) {
	t.Parallel()
	team := regexp.MustCompile(`^@clusterextensions/[a-z-]+$`)
	for line := range strings.Lines(string(read(t, filepath.Join(root, ".github/CODEOWNERS")))) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, fields[0])); fields[0] != "*" && err != nil {
			t.Error(err)
		}
		for _, owner := range fields[1:] {
			if !team.MatchString(owner) {
				t.Errorf("%s is owned by %s, which is no team of ours", fields[0], owner)
			}
		}
	}
}
