package v1_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	domainRule          = "must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the \".\" character."
	imageNameRule       = "a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the \".\", \"_\", \"__\", \"-\" characters."
	identifierRule      = "must end with a digest or a tag"
	tagLengthRule       = "tag is invalid. the tag must not be more than 127 characters"
	tagRule             = "tag is invalid. valid tags must begin with a word character (alphanumeric + \"_\") followed by word characters or \".\", and \"-\" characters"
	digestAlgorithmRule = "digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the \"-\", \"_\", \"+\", and \".\" characters."
	digestLengthRule    = "digest is not valid. the encoded string must be at least 32 characters"
	digestHexRule       = "digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"
)

var digest = strings.Repeat("0123456789abcdef", 4)

func catalog(t *testing.T) object {
	t.Helper()
	return parseObject(t, `
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: operatorhubio}
spec:
  source:
    type: Image
    image: {ref: quay.io/operatorhubio/catalog:latest}
`)
}

func TestClusterCatalogImageReference(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clustercatalogs")
	// Some references pass here that cannot be pulled, as they do in the
	// published API; the pull reports them.
	tests := map[string]struct {
		ref  string
		want []string
	}{
		"tag":                       {"quay.io/operatorhubio/catalog:latest", nil},
		"digest":                    {"quay.io/operatorhubio/catalog@sha256:" + digest, nil},
		"upper case digest":         {"quay.io/a/b@sha256:" + strings.ToUpper(digest), nil},
		"compound algorithm":        {"quay.io/a/b@sha256+b64u.x-y_z:" + digest, nil},
		"port":                      {"my-registry.io:8080/a/b:v1", nil},
		"port and digest":           {"my-registry.io:8080/a/b@sha256:" + digest, nil},
		"localhost":                 {"localhost/a:v1", nil},
		"tag starts with _":         {"quay.io/a/b:_1.2-3", nil},
		"tag of 127":                {"quay.io/a/b:" + strings.Repeat("a", 127), nil},
		"tag of 127 and a port":     {"quay.io:8080/a/b:" + strings.Repeat("a", 127), nil},
		"upper case name component": {"quay.io/a/B:latest", nil},
		"tag and digest":            {"quay.io/a/b:tag@sha256:" + digest, nil},
		"no domain":                 {"ubuntu/foo:latest", nil},
		"1000 characters":           {"quay.io/" + strings.Repeat("a", 990) + ":t", nil},
		"1001 characters":           {"quay.io/" + strings.Repeat("a", 991) + ":t", []string{"Too long"}},
		"empty":                     {"", []string{domainRule, imageNameRule, identifierRule}},
		"starts with hyphen":        {"-quay.io/a:v1", []string{domainRule}},
		"domain with _":             {"my_registry/a:v1", []string{domainRule}},
		"scheme":                    {"https://quay.io/a:v1", nil},
		"no name":                   {"quay.io:latest", []string{imageNameRule}},
		"name starts with _":        {"quay.io/_a:latest", []string{imageNameRule}},
		"upper case name":           {"quay.io/A:latest", []string{imageNameRule}},
		"no identifier":             {"quay.io/a/b", []string{identifierRule}},
		"digest without algorithm":  {"quay.io/a/b@" + digest, []string{identifierRule}},
		"port but no tag":           {"host:8080/a/b", []string{tagRule}},
		"tag of 128":                {"quay.io/a/b:" + strings.Repeat("a", 128), []string{tagLengthRule}},
		"empty tag":                 {"quay.io/a/b:", []string{tagRule}},
		"tag starts with hyphen":    {"quay.io/a/b:-v1", []string{tagRule}},
		"tag with plus sign":        {"quay.io/a/b:v1+2", []string{tagRule}},
		"algorithm starts with 2":   {"quay.io/a/b@256sha:" + digest, []string{digestAlgorithmRule}},
		"algorithm part with digit": {"quay.io/a/b@sha-256:" + digest, []string{digestAlgorithmRule}},
		"no algorithm":              {"quay.io/a/b@:" + digest, []string{digestAlgorithmRule}},
		"digest of 32":              {"quay.io/a/b@md5:" + digest[:32], nil},
		"digest of 31":              {"quay.io/a/b@md5:" + digest[:31], []string{digestLengthRule}},
		"digest not hex":            {"quay.io/a/b@sha256:" + strings.Repeat("z", 64), []string{digestHexRule}},
		"short and not hex":         {"quay.io/a/b@sha256:z", []string{digestLengthRule, digestHexRule}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.create(t, catalog(t).with(t, "spec.source.image.ref", test.ref))
			if diff := cmp.Diff(below("spec.source.image.ref", test.want), got); diff != "" {
				t.Errorf("ref %q (-want +got):\n%s", test.ref, diff)
			}
		})
	}
}

// below prefixes every message with the field it is about.
func below(path string, messages []string) []string {
	var lines []string
	for _, message := range messages {
		lines = append(lines, path+": "+message)
	}
	return lines
}

func TestClusterCatalogField(t *testing.T) {
	t.Parallel()
	admission := newAdmission(t, "clustercatalogs")
	const digestPoll = "spec.source.image: cannot specify pollIntervalMinutes while using digest-based image"
	const priorityFormat = "<nil>: Checked value must be of type integer with format int32 in spec.priority"
	tests := map[string]struct {
		path  string
		value any
		want  []string
	}{
		"poll every minute":  {"spec.source.image.pollIntervalMinutes", int64(1), nil},
		"poll all the time":  {"spec.source.image.pollIntervalMinutes", int64(0), []string{"spec.source.image.pollIntervalMinutes: spec.source.image.pollIntervalMinutes in body should be greater than or equal to 1"}},
		"poll a digest":      {"spec.source.image", map[string]any{"ref": "quay.io/a@sha256:" + digest, "pollIntervalMinutes": int64(5)}, []string{digestPoll}},
		"no reference":       {"spec.source.image", map[string]any{}, []string{"spec.source.image.ref: Required value"}},
		"no image":           {"spec.source", map[string]any{"type": "Image"}, []string{"spec.source: image is required when source type is Image, and forbidden otherwise"}},
		"no type":            {"spec.source", map[string]any{}, []string{"spec.source.type: Required value"}},
		"unknown type":       {"spec.source", map[string]any{"type": "Git"}, []string{"spec.source.type: Unsupported value"}},
		"no source":          {"spec", map[string]any{}, []string{"spec.source: Required value"}},
		"lowest priority":    {"spec.priority", int64(math.MinInt32), nil},
		"highest priority":   {"spec.priority", int64(math.MaxInt32), nil},
		"priority too low":   {"spec.priority", int64(math.MinInt32 - 1), []string{priorityFormat, "spec.priority: spec.priority in body should be greater than or equal to -2147483648"}},
		"priority too high":  {"spec.priority", int64(math.MaxInt32 + 1), []string{priorityFormat, "spec.priority: spec.priority in body should be less than or equal to 2147483647"}},
		"unavailable":        {"spec.availabilityMode", "Unavailable", nil},
		"unknown mode":       {"spec.availabilityMode", "Enabled", []string{"spec.availabilityMode: Unsupported value"}},
		"served over https":  {"status.urls.base", "https://catalogd-service.olmv1-system.svc/catalogs/c", nil},
		"served over http":   {"status.urls.base", "http://catalogd-service.olmv1-system.svc/catalogs/c", nil},
		"served nowhere":     {"status.urls.base", "catalogs", []string{"status.urls.base: must be a valid URL"}},
		"served over ftp":    {"status.urls.base", "ftp://a/b", []string{"status.urls.base: scheme must be either http or https"}},
		"URL too long":       {"status.urls.base", "https://a/" + strings.Repeat("a", 516), []string{"status.urls.base: Too long"}},
		"resolved reference": {"status.resolvedSource", map[string]any{"type": "Image", "image": map[string]any{"ref": "quay.io/a/b@sha256:" + digest}}, nil},
		"resolved to a tag":  {"status.resolvedSource", map[string]any{"type": "Image", "image": map[string]any{"ref": "quay.io/a/b:v1"}}, []string{"status.resolvedSource.image.ref: must end with a digest"}},
		"resolved to nothing": {"status.resolvedSource", map[string]any{"type": "Image"}, []string{
			"status.resolvedSource.image: Required value",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.create(t, catalog(t).with(t, test.path, test.value))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s = %v (-want +got):\n%s", test.path, test.value, diff)
			}
		})
	}
	if got := admission.create(t, catalog(t).without("spec")); !slices.Equal(got, []string{"spec: Required value"}) {
		t.Errorf("without spec: got %q", got)
	}
}

func TestClusterCatalogDefaults(t *testing.T) {
	t.Parallel()
	stored := newAdmission(t, "clustercatalogs").store(catalog(t))
	want := catalog(t).with(t, "spec.priority", int64(0)).with(t, "spec.availabilityMode", "Available").
		with(t, "status.observedGeneration", int64(-1))
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}
