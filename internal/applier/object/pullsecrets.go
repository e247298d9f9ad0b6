package object

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pullSecrets is a list that the API server replaces whole, although several writers add entries: platforms add
// credentials of their registries to each ServiceAccount.
const pullSecrets = "imagePullSecrets"

// mergePullSecrets adds entries of other writers to what is wanted of a ServiceAccount. The live object has them, and the
// revision before did not. They keep their order. A field that no revision sets is left alone.
func (w ThreeWay) mergePullSecrets(t goType) ThreeWay {
	if t.Type != reflect.TypeFor[corev1.ServiceAccount]() || !w.setsPullSecrets() {
		return w
	}
	wanted, isList := pullSecretsOf(w.Wanted)
	before, isListBefore := pullSecretsOf(w.before())
	live, isListLive := pullSecretsOf(w.Live)
	if !isList || !isListBefore || !isListLive {
		return w // the API server refuses what is not a list of objects
	}
	merged := slices.DeleteFunc(slices.Clone(live), func(entry any) bool {
		return hasPullSecret(before, entry) && !hasPullSecret(wanted, entry)
	})
	for _, entry := range wanted {
		if !hasPullSecret(merged, entry) {
			merged = append(merged, entry)
		}
	}
	w.Wanted = w.Wanted.DeepCopy()
	if len(merged) == 0 {
		delete(w.Wanted.Object, pullSecrets)
	} else {
		w.Wanted.Object[pullSecrets] = merged
	}
	return w
}

func (w ThreeWay) setsPullSecrets() bool {
	return w.Wanted.Object[pullSecrets] != nil || w.before().Object[pullSecrets] != nil
}

// changesPullSecrets reports whether a revision changes the field. Only the live object has the entries of others.
func (w ThreeWay) changesPullSecrets(t goType) bool {
	return t.Type == reflect.TypeFor[corev1.ServiceAccount]() && !reflect.DeepEqual(w.Wanted.Object[pullSecrets], w.before().Object[pullSecrets])
}

// pullSecretsOf returns the entries, and whether the field is a list or not set.
func pullSecretsOf(account *unstructured.Unstructured) ([]any, bool) {
	value := account.Object[pullSecrets]
	entries, isList := value.([]any)
	return entries, isList || value == nil
}

// hasPullSecret reports whether a list has an entry with the same name.
func hasPullSecret(entries []any, entry any) bool {
	return slices.ContainsFunc(entries, func(other any) bool { return pullSecretName(other) == pullSecretName(entry) })
}

func pullSecretName(entry any) string {
	fields, _ := entry.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
