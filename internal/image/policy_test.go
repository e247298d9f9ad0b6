package image_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// scoped accepts one repository and rejects everything else.
const scoped = `{"default":[{"type":"reject"}],"transports":{"docker":{
	"registry.test/pkg":[{"type":"insecureAcceptAnything"}]}}}`

func TestPolicyRejects(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"reject"}]}`)
	f.registry.ResetRequests()
	for _, ref := range []string{"registry.test/pkg:v1", "registry.test/pkg@" + d} {
		_, err := f.pull(t, ref, image.BundleContent)
		if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) || rejected.Ref != ref || errors.Is(err, image.ErrContent) {
			t.Errorf("error = %v, want a PolicyError", err)
		}
	}
	if count := f.registry.Count("/blobs/"); count != 0 {
		t.Errorf("%d blobs of a rejected image were read", count)
	}
	f.wantCached(t, 0)
}

func TestPolicyRequiresSignature(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"signedBy","keyType":"GPGKeys","keyData":"AAAA"}]}`)
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("error = %v, want a PolicyError", err)
	}
}

// TestPolicyHoldsForCachedContent: that one repository is trusted says nothing
// about another that happens to serve the same bytes, nor about tomorrow.
func TestPolicyHoldsForCachedContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	if _, err := f.registry.Push(t.Context(), "other:v1", mapFS(bundleFiles), nil); err != nil {
		t.Fatal(err)
	}
	writeFile(t, f.config.PolicyFile, scoped)
	f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent)
	_, err := f.pull(t, "registry.test/other@"+d, image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("other repository: error = %v, want a PolicyError", err)
	}
	writeFile(t, f.config.PolicyFile, `{"default":[{"type":"reject"}]}`)
	_, err = f.pull(t, "registry.test/pkg@"+d, image.BundleContent)
	if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
		t.Errorf("stricter policy: error = %v, want a PolicyError", err)
	}
	writeFile(t, f.config.PolicyFile, acceptAnything)
	f.registry.ResetRequests()
	f.mustPull(t, "registry.test/other@"+d, image.BundleContent)
	if count := f.registry.Count("/blobs/"); count != 0 {
		t.Errorf("%d blobs were read although the content was cached", count)
	}
	f.wantCached(t, 1)
}

func TestPolicyFile(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, content string }{
		"missing":      {reason: "a file that is named has to be there"},
		"not JSON":     {reason: "malformed", content: "{"},
		"no default":   {reason: "malformed", content: `{"transports":{}}`},
		"unknown key":  {reason: "a misspelt rule must not be ignored", content: `{"default":[{"type":"reject"}],"tranports":{}}`},
		"unknown type": {reason: "malformed", content: `{"default":[{"type":"trustMe"}]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			config := f.config
			config.PolicyFile = filepath.Join(t.TempDir(), "policy.json")
			if tc.content != "" {
				writeFile(t, config.PolicyFile, tc.content)
			}
			if _, err := image.New(config); err == nil {
				t.Errorf("New succeeded (%s)", tc.reason)
			}
			if tc.content == "" {
				return
			}
			// The same file put in place later.
			writeFile(t, f.config.PolicyFile, tc.content)
			if _, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent); err == nil {
				t.Errorf("Pull succeeded (%s)", tc.reason)
			}
		})
	}
}

// The places of the system's policy are found through the environment, so this
// test cannot run in parallel with others.
func TestSystemPolicy(t *testing.T) {
	dir := t.TempDir()
	config := image.Config{Dir: filepath.Join(dir, "cache")}
	t.Setenv("CONTAINERS_POLICY_JSON", writeFile(t, filepath.Join(dir, "policy.json"), acceptAnything))
	puller, err := image.New(config)
	if err != nil || puller.AcceptsAnything() {
		t.Errorf("New = %v, error %v, want the policy that the environment names", puller, err)
	}
	t.Setenv("CONTAINERS_POLICY_JSON", writeFile(t, filepath.Join(dir, "broken.json"), "{"))
	if _, err := image.New(config); err == nil {
		t.Error("New accepted a malformed system policy")
	}
}
