package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// statusOf gives the whole status after a pass. Conditions of types that are
// not ours stay as they are; transition times move only with the status of
// their condition.
func statusOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, now time.Time) *ocv1.ClusterExtensionStatus {
	status := ext.Status.DeepCopy()
	status.ObservedGeneration = ext.Generation
	status.Install = installOf(ext, outcome)
	conditions := append(
		[]metav1.Condition{installedCondition(outcome), progressingCondition(v)},
		deprecationConditions(ext, outcome)...)
	for _, condition := range conditions {
		condition.ObservedGeneration = ext.Generation
		condition.LastTransitionTime = metav1.NewTime(now)
		condition.Message = presentable(condition.Message)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// installOf keeps the last known bundle while the records cannot be read.
func installOf(ext *ocv1.ClusterExtension, outcome Outcome) *ocv1.ClusterExtensionInstallStatus {
	switch {
	case outcome.Observed.InstallationErr != nil:
		return ext.Status.Install.DeepCopy()
	case outcome.Installed == nil:
		return nil
	}
	return &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{
		Name:    outcome.Installed.Bundle.Name,
		Version: outcome.Installed.Bundle.Version,
	}}
}

func installedCondition(outcome Outcome) metav1.Condition {
	condition := metav1.Condition{Type: ocv1.TypeInstalled, Reason: ocv1.ReasonFailed}
	var noAccount *MissingServiceAccountError
	switch {
	case outcome.Observed.InstallationErr != nil:
		condition.Status, condition.Message = metav1.ConditionUnknown, outcome.Observed.InstallationErr.Error()
	case outcome.Installed != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, ocv1.ReasonSucceeded
		condition.Message = fmt.Sprintf("Installed bundle %s successfully", outcome.Installed.Image)
	case errors.As(outcome.Err, &noAccount):
		condition.Status, condition.Message = metav1.ConditionUnknown, outcome.Err.Error()
	default:
		condition.Status, condition.Message = metav1.ConditionFalse, "No bundle installed"
	}
	return condition
}

func progressingCondition(v verdict) metav1.Condition {
	condition := metav1.Condition{
		Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: v.reason, Message: v.message,
	}
	if v.disposition == Blocked {
		condition.Status = metav1.ConditionFalse
	}
	return condition
}

const (
	messageDeprecationUnknown = "deprecation status unknown: catalog data unavailable"
	messageNoBundle           = "no bundle installed yet"
)

// deprecationConditions tell what the catalog that won says about the package,
// its channels and the installed bundle.
func deprecationConditions(ext *ocv1.ClusterExtension, outcome Outcome) []metav1.Condition {
	if outcome.Target.Resolution == nil {
		return unknownDeprecations(outcome)
	}
	var channels []string
	if catalog := ext.Spec.Source.Catalog; catalog != nil {
		channels = catalog.Channels
	}
	declared := outcome.Target.Resolution.Deprecations
	ofPackage := messagesOf(declared, func(d resolve.Deprecation) bool { return d.Scope == resolve.PackageScope })
	ofChannels := messagesOf(declared, func(d resolve.Deprecation) bool {
		return d.Scope == resolve.ChannelScope && (len(channels) == 0 || slices.Contains(channels, d.Name))
	})
	ofBundle := messagesOf(declared, func(d resolve.Deprecation) bool {
		return d.Scope == resolve.BundleScope && outcome.Installed != nil && d.Name == outcome.Installed.Bundle.Name
	})
	bundleCondition := deprecation(ocv1.TypeBundleDeprecated, ofBundle, "bundle not deprecated")
	if outcome.Installed == nil {
		bundleCondition = unknown(ocv1.TypeBundleDeprecated, ocv1.ReasonAbsent, messageNoBundle)
	}
	return []metav1.Condition{
		deprecation(ocv1.TypeDeprecated, slices.Concat(ofPackage, ofChannels, ofBundle), "not deprecated"),
		deprecation(ocv1.TypePackageDeprecated, ofPackage, "package not deprecated"),
		deprecation(ocv1.TypeChannelDeprecated, ofChannels, "channel not deprecated"),
		bundleCondition,
	}
}

func unknownDeprecations(outcome Outcome) []metav1.Condition {
	var conditions []metav1.Condition
	for _, kind := range []string{
		ocv1.TypeDeprecated, ocv1.TypePackageDeprecated, ocv1.TypeChannelDeprecated, ocv1.TypeBundleDeprecated,
	} {
		conditions = append(conditions, unknown(kind, ocv1.ReasonDeprecationStatusUnknown, messageDeprecationUnknown))
	}
	if outcome.Installed == nil && outcome.Observed.InstallationErr == nil {
		conditions[len(conditions)-1] = unknown(ocv1.TypeBundleDeprecated, ocv1.ReasonAbsent, messageNoBundle)
	}
	return conditions
}

func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

func deprecation(kind string, messages []string, none string) metav1.Condition {
	if len(messages) == 0 {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: ocv1.ReasonNotDeprecated, Message: none}
	}
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: ocv1.ReasonDeprecated, Message: strings.Join(messages, "\n"),
	}
}

// messagesOf leaves out deprecations that say nothing.
func messagesOf(declared []resolve.Deprecation, applies func(resolve.Deprecation) bool) []string {
	var messages []string
	for _, d := range declared {
		if applies(d) && d.Message != "" {
			messages = append(messages, d.Message)
		}
	}
	return messages
}
