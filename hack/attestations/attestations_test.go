package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

const commit = "03c29e7000000000000000000000000000000000"

var digestOfBase = "sha256:" + strings.Repeat("b", 64)

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// newRelease writes a layout with an image for two platforms, and SBOMs of it. It returns the
// options for run, and the digests by the names of the SBOMs.
func newRelease(t *testing.T, more ...string) (options, map[string]string) {
	t.Helper()
	o := options{layout: t.TempDir(), files: t.TempDir(), out: t.TempDir(), version: "v0.1.0", commit: commit}
	digests := map[string]string{}
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		one := mutate.Annotations(must[v1.Image](t)(random.Image(10, 1)), map[string]string{
			annotationBaseName: "base.test/static:nonroot", annotationBaseDigest: digestOfBase,
		}).(v1.Image)
		digests["linux-"+architecture] = must[v1.Hash](t)(one.Digest()).String()
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	digests["index"] = must[v1.Hash](t)(index.Digest()).String()
	if err := must[layout.Path](t)(layout.Write(o.layout, empty.Index)).AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	for name := range digests {
		more = append(more, "operator-controller_0.1.0_image-"+name+".spdx.json")
	}
	for _, name := range more {
		if err := os.WriteFile(filepath.Join(o.files, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o, digests
}

func noEnv(string) string { return "" }

func TestAttestations(t *testing.T) {
	t.Parallel()
	o, digests := newRelease(t, "operator-controller_0.1.0.openvex.json")
	var got []string
	for _, one := range must[[]attestation](t)(run(o, noEnv)) {
		got = append(got, one.digest.String()+" "+one.kind+" "+filepath.Base(one.file))
	}
	want := []string{
		digests["index"] + " slsaprovenance1 provenance.json",
		digests["index"] + " spdxjson operator-controller_0.1.0_image-index.spdx.json",
		digests["index"] + " openvex operator-controller_0.1.0.openvex.json",
		digests["linux-amd64"] + " spdxjson operator-controller_0.1.0_image-linux-amd64.spdx.json",
		digests["linux-arm64"] + " spdxjson operator-controller_0.1.0_image-linux-arm64.spdx.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attestations (-want +got):\n%s", diff)
	}
}

// Without an SBOM of one platform, nothing is attested.
func TestMissingSBOM(t *testing.T) {
	t.Parallel()
	o, _ := newRelease(t)
	if err := os.Remove(filepath.Join(o.files, "operator-controller_0.1.0_image-linux-arm64.spdx.json")); err != nil {
		t.Fatal(err)
	}
	if prepared, err := run(o, noEnv); err == nil {
		t.Errorf("it returns %v, want an error", prepared)
	}
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	workflow := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_SHA": commit, "GITHUB_REPOSITORY": "clusterextensions/operator-controller", "GITHUB_REF": "refs/tags/v0.1.0",
		"GITHUB_WORKFLOW_REF": "clusterextensions/operator-controller/.github/workflows/release.yml@refs/tags/v0.1.0",
		"GITHUB_SERVER_URL":   "https://github.com", "GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY_ID": "1", "GITHUB_REPOSITORY_OWNER_ID": "2",
		"RUNNER_ENVIRONMENT": "github-hosted", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2",
	}
	dependencies := func(source string) string {
		return `"resolvedDependencies": [
			{"uri": "` + source + `", "digest": {"gitCommit": "` + commit + `"}},
			{"uri": "pkg:golang/stdlib@1.26.3"},
			{"name": "base.test/static:nonroot", "digest": {"sha256": "` + strings.TrimPrefix(digestOfBase, "sha256:") + `"}}]`
	}
	for name, c := range map[string]struct {
		env  func(string) string
		want string
	}{
		"local": {noEnv, `{
			"buildDefinition": {
				"buildType": "https://github.com/clusterextensions/operator-controller/blob/main/RELEASE.md#provenance",
				"externalParameters": {"version": "v0.1.0"},
				` + dependencies("git+https://github.com/clusterextensions/operator-controller") + `},
			"runDetails": {"builder": {"id": "https://github.com/clusterextensions/operator-controller/blob/main/RELEASE.md#local-build"}}}`},
		"workflow": {func(name string) string { return workflow[name] }, `{
			"buildDefinition": {
				"buildType": "https://actions.github.io/buildtypes/workflow/v1",
				"externalParameters": {"workflow": {
					"ref": "refs/tags/v0.1.0", "repository": "https://github.com/clusterextensions/operator-controller", "path": ".github/workflows/release.yml"}},
				"internalParameters": {"github": {
					"event_name": "push", "repository_id": "1", "repository_owner_id": "2", "runner_environment": "github-hosted"}},
				` + dependencies("git+https://github.com/clusterextensions/operator-controller@refs/tags/v0.1.0") + `},
			"runDetails": {
				"builder": {"id": "https://github.com/clusterextensions/operator-controller/.github/workflows/release.yml@refs/tags/v0.1.0"},
				"metadata": {"invocationId": "https://github.com/clusterextensions/operator-controller/actions/runs/7/attempts/2"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := newRelease(t)
			read := must[*image](t)(readImage(o.layout))
			made := must[*provenance](t)(newProvenance(build{version: o.version, commit: o.commit, goVersion: "1.26.3", bases: read.bases, env: c.env}))
			var got, want any
			for text, to := range map[string]*any{string(must[[]byte](t)(json.Marshal(made))): &got, c.want: &want} {
				if err := json.Unmarshal([]byte(text), to); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("provenance (-want +got):\n%s", diff)
			}
		})
	}
}

// A workflow that runs for another commit than the checkout states nothing.
func TestOtherCommit(t *testing.T) {
	t.Parallel()
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_SHA": "another"}
	_, err := newProvenance(build{version: "v0.1.0", commit: commit, env: func(name string) string { return env[name] }})
	if err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("got the error %v", err)
	}
}
