package webhookcert

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What of an object a patch writes.
const (
	partCertificate = "the certificate"
	partAuthority   = "the certificate authority"
)

// writeTo replaces the data of a Secret, unless somebody else has written it
// since it was read.
func writeTo(secret certified, data map[string][]byte) (Step, error) {
	changes := make(map[string]any, len(data))
	for key := range secret.data {
		changes[key] = nil
	}
	for key, value := range data {
		changes[key] = value
	}
	patch, err := patchOf(secret.object, partCertificate, map[string]any{
		"metadata": map[string]any{"resourceVersion": secret.object.GetResourceVersion()},
		"data":     changes,
	})
	return Step{Patches: []Patch{patch}}, err
}

// injectInto writes to those callers that do not trust the authorities yet.
func injectInto(callers []caller, authorities []byte) (Step, error) {
	var step Step
	for _, caller := range callers {
		if caller.trusts(authorities) {
			continue
		}
		patch, err := patchOf(caller.object, partAuthority, caller.trusting(authorities))
		if err != nil {
			return Step{}, err
		}
		step.Patches = append(step.Patches, patch)
	}
	return step, nil
}

// trusting is what a caller is to have in order to trust the authorities.
func (c caller) trusting(authorities []byte) map[string]any {
	trust := map[string]any{"caBundle": authorities}
	switch c.object.GetKind() {
	case kindCRD:
		return map[string]any{"spec": map[string]any{"conversion": map[string]any{
			"webhook": map[string]any{"clientConfig": trust},
		}}}
	case kindAPIService:
		return map[string]any{"spec": trust}
	}
	// The API server merges this list by name.
	var webhooks []any
	for _, config := range c.configs {
		webhooks = append(webhooks, map[string]any{"name": config.webhook, "clientConfig": trust})
	}
	return map[string]any{"webhooks": webhooks}
}

func patchOf(object *unstructured.Unstructured, part string, content map[string]any) (Patch, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding a patch of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return Patch{Object: object, Part: part, Data: data}, nil
}
