package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	repository = "https://github.com/clusterextensions/operator-controller"

	// workflowBuild is the build type of a GitHub workflow.
	workflowBuild = "https://actions.github.io/buildtypes/workflow/v1"
	// localBuild is the build type of make release on any other machine.
	localBuild = repository + "/blob/main/RELEASE.md#provenance"
	// localBuilder is the builder of a local build. It identifies no machine.
	localBuilder = repository + "/blob/main/RELEASE.md#local-build"
)

// Annotations by which ko records the base of an image.
const (
	annotationBaseName   = "org.opencontainers.image.base.name"
	annotationBaseDigest = "org.opencontainers.image.base.digest"
)

// provenance is a predicate of the type https://slsa.dev/provenance/v1.
type provenance struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string         `json:"buildType"`
	ExternalParameters   map[string]any `json:"externalParameters"`
	InternalParameters   map[string]any `json:"internalParameters,omitempty"`
	ResolvedDependencies []resource     `json:"resolvedDependencies"`
}

type resource struct {
	URI    string            `json:"uri,omitempty"`
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type runDetails struct {
	Builder  builder        `json:"builder"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

type builder struct {
	ID string `json:"id"`
}

// base is an image that the image is built on.
type base struct {
	name   string
	digest v1.Hash
}

func (i *image) addBase(annotations map[string]string) {
	digest, err := v1.NewHash(annotations[annotationBaseDigest])
	if err != nil {
		return
	}
	if found := (base{annotations[annotationBaseName], digest}); !slices.Contains(i.bases, found) {
		i.bases = append(i.bases, found)
	}
}

// build contains the facts that the provenance states.
type build struct {
	version, commit, goVersion string

	bases []base
	env   func(string) string
}

// newProvenance returns the provenance of a build: of a GitHub workflow if the environment is one,
// and of a local build otherwise. It returns an error if the workflow runs for another commit.
func newProvenance(b build) (*provenance, error) {
	if b.version == "" || b.commit == "" {
		return nil, errors.New("--version and --commit are required")
	}
	made := &provenance{
		BuildDefinition: buildDefinition{BuildType: localBuild, ExternalParameters: map[string]any{"version": b.version}},
		RunDetails:      runDetails{Builder: builder{localBuilder}},
	}
	source := resource{URI: "git+" + repository, Digest: map[string]string{"gitCommit": b.commit}}
	if b.env("GITHUB_ACTIONS") == "true" {
		ref, err := made.fromWorkflow(b)
		if err != nil {
			return nil, err
		}
		source.URI = "git+" + ref
	}
	dependencies := []resource{source, {URI: "pkg:golang/stdlib@" + b.goVersion}}
	for _, one := range b.bases {
		dependencies = append(dependencies, resource{Name: one.name, Digest: map[string]string{one.digest.Algorithm: one.digest.Hex}})
	}
	made.BuildDefinition.ResolvedDependencies = dependencies
	return made, nil
}

// fromWorkflow fills the parts that a GitHub workflow sets, and returns the repository with the
// ref that the workflow runs for.
func (p *provenance) fromWorkflow(b build) (string, error) {
	if commit := b.env("GITHUB_SHA"); commit != b.commit {
		return "", fmt.Errorf("the workflow runs for commit %s, but the checkout is at %s", commit, b.commit)
	}
	server := cmp.Or(b.env("GITHUB_SERVER_URL"), "https://github.com")
	name, ref, workflow := b.env("GITHUB_REPOSITORY"), b.env("GITHUB_REF"), b.env("GITHUB_WORKFLOW_REF")
	if name == "" || ref == "" || workflow == "" {
		return "", errors.New("GITHUB_REPOSITORY, GITHUB_REF and GITHUB_WORKFLOW_REF are required in a workflow")
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(workflow, name+"/"), "@")
	p.BuildDefinition.BuildType = workflowBuild
	p.BuildDefinition.ExternalParameters = map[string]any{
		"workflow": map[string]any{"ref": ref, "repository": server + "/" + name, "path": path},
	}
	p.BuildDefinition.InternalParameters = map[string]any{"github": map[string]any{
		"event_name":          b.env("GITHUB_EVENT_NAME"),
		"repository_id":       b.env("GITHUB_REPOSITORY_ID"),
		"repository_owner_id": b.env("GITHUB_REPOSITORY_OWNER_ID"),
		"runner_environment":  b.env("RUNNER_ENVIRONMENT"),
	}}
	p.RunDetails.Builder.ID = server + "/" + workflow
	p.RunDetails.Metadata = map[string]any{"invocationId": fmt.Sprintf("%s/%s/actions/runs/%s/attempts/%s",
		server, name, b.env("GITHUB_RUN_ID"), cmp.Or(b.env("GITHUB_RUN_ATTEMPT"), "1"))}
	return server + "/" + name + "@" + ref, nil
}

func (p *provenance) write(file string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}
