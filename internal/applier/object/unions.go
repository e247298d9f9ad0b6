package object

import (
	"maps"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// unions are groups of fields that exclude each other, by the structs that have them.
var unions = map[reflect.Type][]string{
	reflect.TypeFor[admissionregistrationv1.WebhookClientConfig](): {"url", "service"},
	reflect.TypeFor[apiextensionsv1.WebhookClientConfig]():         {"url", "service"},
	reflect.TypeFor[corev1.EnvVar]():                               {"value", "valueFrom"},
	reflect.TypeFor[corev1.EnvVarSource]():                         {"configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"},
	reflect.TypeFor[corev1.LifecycleHandler]():                     {"exec", "httpGet", "sleep", "tcpSocket"},
	reflect.TypeFor[corev1.Probe]():                                {"exec", "grpc", "httpGet", "tcpSocket"},
	reflect.TypeFor[networkingv1.IngressBackend]():                 {"resource", "service"},
	reflect.TypeFor[networkingv1.ServiceBackendPort]():             {"name", "number"},
	reflect.TypeFor[policyv1.PodDisruptionBudgetSpec]():            {"maxUnavailable", "minAvailable"},
}

// discriminated are fields that the API server allows only with one value of another field. The merge keys of
// Deployments say the same of their strategy.
var discriminated = map[reflect.Type]struct{ by, value, field string }{
	reflect.TypeFor[apiextensionsv1.CustomResourceConversion](): {"strategy", string(apiextensionsv1.WebhookConverter), "webhook"},
	reflect.TypeFor[appsv1.DaemonSetUpdateStrategy]():           {"type", string(appsv1.RollingUpdateDaemonSetStrategyType), "rollingUpdate"},
	reflect.TypeFor[appsv1.StatefulSetUpdateStrategy]():         {"type", string(appsv1.RollingUpdateStatefulSetStrategyType), "rollingUpdate"},
}

// dropExcluded adds fields of the live object to what the revision before has, so that the patch removes them: those
// that cannot be set beside a wanted field, even if another writer has set them.
func dropExcluded(wanted, before, live map[string]any, t goType) {
	if !t.isKnown() {
		return
	}
	if group := unions[t.Type]; slices.ContainsFunc(group, func(field string) bool { return wanted[field] != nil }) {
		for _, field := range group {
			drop(wanted, before, live, field)
		}
	}
	if rule, is := discriminated[t.Type]; is && wanted[rule.by] != nil && wanted[rule.by] != rule.value {
		drop(wanted, before, live, rule.field)
	}
	if t.Type == reflect.TypeFor[corev1.ConfigMap]() {
		dropKeys(wanted, before, live, "data", "binaryData")
		dropKeys(wanted, before, live, "binaryData", "data")
	}
}

func drop(wanted, before, live map[string]any, field string) {
	if wanted[field] == nil && live[field] != nil {
		before[field] = runtime.DeepCopyJSONValue(live[field])
	}
}

// dropKeys removes keys from one map of a ConfigMap that are wanted in the other one.
func dropKeys(wanted, before, live map[string]any, set, other string) {
	keys, _ := wanted[set].(map[string]any)
	there, _ := live[other].(map[string]any)
	kept := maps.Clone(there)
	maps.DeleteFunc(kept, func(key string, _ any) bool { return keys[key] != nil })
	if len(kept) == len(there) {
		return
	}
	before[other] = runtime.DeepCopyJSONValue(there)
	if own, _ := wanted[other].(map[string]any); len(own) > 0 {
		return // these keys are wanted, and the others were
	}
	if len(kept) > 0 {
		wanted[other] = runtime.DeepCopyJSONValue(kept)
	}
}
