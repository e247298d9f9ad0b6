package requirement_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// TestOfContent has the files of a bundle state requirements in every way.
func TestOfContent(t *testing.T) {
	t.Parallel()
	const (
		dependencies = "metadata/dependencies.yaml"
		properties   = "metadata/properties.yaml"
		thing        = `requires API "g.test/v1, Kind=Thing", which the cluster does not serve`
		definition   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.g.test}\n" +
			"spec: {group: g.test, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
		other = `requires package "other" in ">=1.0.0", which is not installed`
	)
	for name, test := range map[string]struct {
		files map[string]string
		spec  string
		want  []string
	}{
		"none":       {},
		"empty file": {files: map[string]string{dependencies: ""}},
		"package": {
			files: map[string]string{dependencies: `dependencies: [{type: olm.package, value: {packageName: other, version: ">=1.0.0"}}]`},
			want:  []string{other},
		},
		"API": {
			files: map[string]string{dependencies: `dependencies: [{type: olm.gvk, value: {group: g.test, version: v1, kind: Thing}}]`},
			want:  []string{thing},
		},
		"constraint": {
			files: map[string]string{dependencies: `dependencies: [{type: olm.constraint, value: {failureMessage: why, package: {packageName: other, versionRange: ">=1.0.0"}}}]`},
			want:  []string{`why (package "other" in ">=1.0.0", which is not installed)`},
		},
		"type that nothing reads": {
			files: map[string]string{dependencies: `dependencies: [{type: olm.label, value: {label: a}}]`},
		},
		"value that is none": {
			files: map[string]string{dependencies: `dependencies: [{type: olm.package, value: {}}]`},
			want:  []string{"states a requirement by olm.package.required that cannot be read: no packageName"},
		},
		"property": {
			files: map[string]string{properties: `properties: [{type: olm.package.required, value: {packageName: other, versionRange: ">=1.0.0"}}]`},
			want:  []string{other},
		},
		"API service": {
			spec: ", apiservicedefinitions: {required: [{name: things, group: g.test, version: v1, kind: Thing}]}",
			want: []string{thing},
		},
		"definition": {
			spec: ", customresourcedefinitions: {required: [{name: things.g.test, version: v1, kind: Thing}]}",
			want: []string{thing},
		},
		"definition that the bundle has": {
			files: map[string]string{"manifests/things.yaml": definition},
			spec:  ", customresourcedefinitions: {required: [{name: things.g.test, version: v1, kind: Thing}], owned: [{name: things.g.test, version: v1, kind: Thing}]}",
		},
		"another version of a definition that the bundle has": {
			files: map[string]string{"manifests/things.yaml": definition},
			spec:  ", customresourcedefinitions: {required: [{name: things.g.test, version: v2, kind: Thing}]}",
			want:  []string{`requires API "g.test/v2, Kind=Thing", which the cluster does not serve`},
		},
		"definitions of nothing": {
			spec: ", customresourcedefinitions: {required: [{name: things, version: v1, kind: Thing}, {name: things.g.test, kind: Thing}, {name: things.g.test, version: v1}]}",
		},
		"the same in all places": {
			files: map[string]string{
				dependencies: `dependencies: [{type: olm.gvk, value: {group: g.test, version: v1, kind: Thing}}]`,
				properties:   `properties: [{type: olm.gvk.required, value: {kind: Thing, version: v1, group: g.test}}]`,
			},
			spec: ", apiservicedefinitions: {required: [{name: things, group: g.test, version: v1, kind: Thing}]}" +
				", customresourcedefinitions: {required: [{name: things.g.test, version: v1, kind: Thing}]}",
			want: []string{thing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{
				"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: needy}")},
				"manifests/csv.yaml": {Data: []byte("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n" +
					"metadata: {name: needy.v1.0.0}\nspec: {version: 1.0.0" + test.spec + "}\n")},
			}
			for name, content := range test.files {
				files[name] = &fstest.MapFile{Data: []byte(content)}
			}
			content, err := bundle.Parse(files)
			if err != nil {
				t.Fatal(err)
			}
			cluster := requirement.Cluster{Serves: func(requirement.API) bool { return false }}
			var got []string
			for _, unmet := range requirement.NewChecker(cluster).Check(requirement.OfContent(content)).Unmet {
				got = append(got, unmet.Text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("unmet are %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnreadableDependencies: such a file states nothing, unless it is beyond bounds.
func TestUnreadableDependencies(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"dependencies: [":      false,
		"dependencies: {a: b}": false,
		"[]":                   false,
		"dependencies: " + strings.Repeat("[", bundle.MaxDepth+1) + strings.Repeat("]", bundle.MaxDepth+1): true,
	} {
		_, err := bundle.Parse(fstest.MapFS{
			"metadata/annotations.yaml":  {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: needy}")},
			"manifests/csv.yaml":         {Data: []byte("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: needy}\n")},
			"metadata/dependencies.yaml": {Data: []byte(text)},
		})
		if refused != (err != nil && strings.Contains(err.Error(), "metadata/dependencies.yaml")) || !refused && err != nil {
			t.Errorf("%.40q: error is %v, want one: %t", text, err, refused)
		}
	}
}
