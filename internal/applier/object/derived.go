package object

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// followDefaults changes fields that no revision sets, and for which the API server computes a default from other fields. After
// an update, the API server keeps the default of the old object.
func followDefaults(wanted, before, live map[string]any, t goType) {
	switch t.Type {
	case reflect.TypeFor[corev1.Container]():
		if before["image"] != nil {
			followDefault(wanted, before, live, "imagePullPolicy", pullPolicyFor)
		}
	case reflect.TypeFor[corev1.PodSpec]():
		if leavesHostNetwork(wanted, before) {
			for _, list := range []string{"containers", "initContainers"} {
				dropHostPorts(wanted[list], before[list], live[list])
			}
		}
	case reflect.TypeFor[networkingv1.NetworkPolicySpec]():
		if len(before) > 0 {
			followDefault(wanted, before, live, "policyTypes", policyTypesFor)
		}
	}
}

func leavesHostNetwork(wanted, before map[string]any) bool {
	return before["hostNetwork"] == true && wanted["hostNetwork"] != true
}

func followDefault(wanted, before, live map[string]any, field string, defaultOf func(map[string]any) any) {
	was, is := defaultOf(before), defaultOf(wanted)
	isDefault := live[field] == nil || reflect.DeepEqual(live[field], was)
	if wanted[field] == nil && before[field] == nil && isDefault && !reflect.DeepEqual(was, is) {
		wanted[field] = is
	}
}

func pullPolicyFor(container map[string]any) any {
	image, _ := container["image"].(string)
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, hasTag := strings.Cut(name, ":")
	if !strings.Contains(name, "@") && (!hasTag || tag == "latest") {
		return string(corev1.PullAlways)
	}
	return string(corev1.PullIfNotPresent)
}

func policyTypesFor(policy map[string]any) any {
	types := []any{string(networkingv1.PolicyTypeIngress)}
	if egress, _ := policy["egress"].([]any); len(egress) > 0 {
		types = append(types, string(networkingv1.PolicyTypeEgress))
	}
	return types
}

// dropHostPorts removes the ports of the node that pods had because they were in its network.
func dropHostPorts(wanted, before, live any) {
	was, is := byKey(before, "name"), byKey(live, "name")
	for _, container := range listOf(wanted) {
		wanted, _ := container.(map[string]any)
		before, live := was.next(wanted), is.next(wanted)
		had, has := byKey(before["ports"], "containerPort"), byKey(live["ports"], "containerPort")
		for _, port := range listOf(wanted["ports"]) {
			wanted, _ := port.(map[string]any)
			before, live := had.next(wanted), has.next(wanted)
			if before != nil && live != nil && wanted["hostPort"] == nil && live["hostPort"] == live["containerPort"] {
				before["hostPort"] = live["hostPort"]
			}
		}
	}
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// keepOthers keeps the entries that other writers have added to a map or list that the revision drops: it adds an empty
// map or list to wanted. Otherwise a patch would remove the map or list with all entries.
func keepOthers(wanted, before, live map[string]any, t goType) {
	for key, value := range before {
		if wanted[key] != nil || !isShared(t, key) {
			continue
		}
		switch live := live[key].(type) {
		case map[string]any:
			if before, isMap := value.(map[string]any); isMap && hasOtherKeys(live, before) {
				wanted[key] = map[string]any{}
			}
		case []any:
			if hasOtherItems(live, value, t.below(key).mergeKey) {
				wanted[key] = []any{}
			}
		}
	}
}

// isShared reports whether several writers can add entries to a field.
func isShared(t goType, key string) bool {
	inner := t.below(key)
	return inner.isKnown() && (inner.Kind() == reflect.Map || inner.mergeKey != "")
}

func hasOtherKeys(live, before map[string]any) bool {
	for key := range live {
		if _, ours := before[key]; !ours {
			return true
		}
	}
	return false
}

func hasOtherItems(live []any, before any, mergeKey string) bool {
	ours := byKey(before, mergeKey)
	for _, item := range live {
		if !ours.has(item) {
			return true
		}
	}
	return false
}

// dropsShared reports whether a value drops a field to which other writers, or the API server, can add entries.
func dropsShared(wanted, before any, t goType) bool {
	t = t.of(before)
	switch before := before.(type) {
	case map[string]any:
		wanted, _ := wanted.(map[string]any)
		if t.Type == reflect.TypeFor[corev1.PodSpec]() && leavesHostNetwork(wanted, before) {
			return true
		}
		for key, value := range before {
			inner := t.below(key)
			if wanted[key] == nil && isShared(t, key) || wanted[key] != nil && inner.isKnown() && dropsShared(wanted[key], value, inner) {
				return true
			}
		}
	case []any:
		items := byKey(wanted, t.mergeKey)
		for _, item := range before {
			if next := items.next(item); t.mergeKey != "" && next != nil && dropsShared(next, item, t.items()) {
				return true
			}
		}
	}
	return false
}
