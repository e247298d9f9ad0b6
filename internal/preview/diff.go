package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// nothing is the name of what is not there, as diff and patch know it.
const nothing = "/dev/null"

// diffWithin is the diff of an object, in as many bytes as there is room for.
func diffWithin(trial *object.Trial, maskEnv bool, room int) string {
	if trial.Holder != nil || trial.Change == object.Unchanged || trial.Live == nil && trial.After == nil {
		return ""
	}
	before, after := copied(trial.Live), copied(trial.After)
	mask(trial.Key, before, after, maskEnv)
	oldName, newName := "a/"+pathOf(trial.Key), "b/"+pathOf(trial.Key)
	if before == nil {
		oldName = nothing
	}
	if after == nil {
		newName = nothing
	}
	return cut(udiff.Unified(oldName, newName, textOf(before), textOf(after)), min(room, maxDiffBytes))
}

// pathOf names an object as if it was a file.
func pathOf(key object.Key) string {
	kind := key.Kind
	if key.Group != "" {
		kind += "." + key.Group
	}
	parts := []string{kind, key.Name}
	if key.Namespace != "" {
		parts = []string{kind, key.Namespace, key.Name}
	}
	return strings.Join(strings.Fields(strings.Join(parts, "/")), "_")
}

// textOf is YAML, which has the keys in their order.
func textOf(content map[string]any) string {
	if content == nil {
		return ""
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Sprintf("# it is no YAML: %v\n", err)
	}
	return string(text)
}

// cut leaves out whole lines, and says how many.
func cut(diff string, limit int) string {
	if len(diff) <= limit {
		return diff
	}
	kept := diff[:strings.LastIndexByte(diff[:max(limit, 0)], '\n')+1]
	return fmt.Sprintf("%s\\ %d more lines are not shown\n", kept, strings.Count(diff[len(kept):], "\n"))
}

// copied is the content that somebody has decided about: without what the API server keeps
// in it.
func copied(from *unstructured.Unstructured) map[string]any {
	if from == nil {
		return nil
	}
	content := from.DeepCopy()
	delete(content.Object, "status")
	if metadata, isObject := content.Object["metadata"].(map[string]any); isObject {
		for _, field := range []string{
			"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
			"resourceVersion", "selfLink", "uid",
		} {
			delete(metadata, field)
		}
		owners, _ := metadata["ownerReferences"].([]any)
		for _, owner := range owners {
			if owner, isObject := owner.(map[string]any); isObject {
				delete(owner, "uid")
			}
		}
	}
	digestAuthorities(content.Object)
	return content.Object
}

// digestAuthorities puts a digest in the place of each certificate of an authority. It is
// long, and a value of a Secret where the certificate is made on the cluster.
func digestAuthorities(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if text, isText := inner.(string); isText && key == "caBundle" && text != "" {
				sum := sha256.Sum256([]byte(text))
				value[key] = "sha256:" + hex.EncodeToString(sum[:])
				continue
			}
			digestAuthorities(inner)
		}
	case []any:
		for _, inner := range value {
			digestAuthorities(inner)
		}
	}
}
