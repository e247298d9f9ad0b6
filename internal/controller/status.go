package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// statusOf gives the whole status after a pass. Conditions of types that are
// not ours stay as they are; transition times move only with the status of
// their condition.
func statusOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, p phase, now time.Time) *ocv1.ClusterExtensionStatus {
	status := ext.Status.DeepCopy()
	status.ObservedGeneration = ext.Generation
	status.Install = installOf(ext, outcome)
	status.Pending = pendingOf(ext, outcome, metav1.NewTime(now.Truncate(time.Second)))
	status.ResolvedSource = resolvedOf(ext, outcome)
	conditions := append(
		[]metav1.Condition{
			installedCondition(outcome, v), progressingCondition(v, p),
			readyCondition(ext, outcome, v, p), availableCondition(outcome),
		},
		deprecationConditions(ext, outcome)...)
	conditions = append(conditions, phaseConditions(status, p)...)
	conditions = append(conditions, suspendedConditions(status, ext, outcome)...)
	for _, condition := range conditions {
		condition.ObservedGeneration = ext.Generation
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // as it is stored
		}
		condition.Message = excerpt.Message(condition.Message)
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
	installed := &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{
		Name:    outcome.Installed.Bundle.Name,
		Version: outcome.Installed.Bundle.Version,
	}}
	if ext.Spec.Source.Catalog == nil {
		installed.PackageName = outcome.Installed.Bundle.Package
	}
	return installed
}

func installedCondition(outcome Outcome, v verdict) metav1.Condition {
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
		if v.disposition == Working || outcome.Suspended != nil {
			condition.Reason = ocv1.ReasonAbsent
		}
	}
	return condition
}

// progressingCondition is about the content. How its workloads do is said by the
// conditions that the reference implementation does not have.
func progressingCondition(v verdict, p phase) metav1.Condition {
	condition := metav1.Condition{
		Type: ocv1.TypeProgressing, Status: metav1.ConditionTrue, Reason: v.reason, Message: v.message,
	}
	if v.disposition == Blocked || p.overdue {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, p.reason, cmp.Or(p.whole, v.message)
	}
	return condition
}

// readyCondition is True only when the world is as wanted, and tells why it is
// not, or could not be newer. It is Unknown while nothing is amiss but time has to
// pass, and while it cannot be told.
func readyCondition(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, p phase) metav1.Condition {
	condition := metav1.Condition{
		Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: p.reason, Message: whyOf(ext, outcome, v),
	}
	switch {
	case outcome.Observed.InstallationErr != nil, p.reason == ocv1.ReasonAvailabilityUnknown:
		condition.Status = metav1.ConditionUnknown
	case outcome.Err != nil, p.stalled, p.reason == ocv1.ReasonUnavailable, outcome.isSuspendedHalfway():
	case p.working:
		condition.Status = metav1.ConditionUnknown
	case outcome.Pending != nil && outcome.Suspended == nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, ocv1.ReasonApprovalPending
	case outcome.Veto != nil:
		condition.Status, condition.Reason = metav1.ConditionTrue, ocv1.ReasonUpgradeHeld
	default:
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// availableReasons are those of the condition Available, by its status.
var availableReasons = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue:    ocv1.ReasonAvailable,
	metav1.ConditionFalse:   ocv1.ReasonUnavailable,
	metav1.ConditionUnknown: ocv1.ReasonAvailabilityUnknown,
}

// availableCondition is about the workloads of what is installed, whatever comes
// next.
func availableCondition(outcome Outcome) metav1.Condition {
	if outcome.Installed == nil {
		return unknown(ocv1.TypeAvailable, ocv1.ReasonAbsent, messageNoBundle)
	}
	status, reasons := availability(outcome)
	condition := metav1.Condition{Type: ocv1.TypeAvailable, Status: status, Reason: availableReasons[status]}
	condition.Message = excerpt.Of(reasons, maxWorkloads)
	switch {
	case len(reasons) == 0:
		condition.Message = "all workloads are available"
	case status == metav1.ConditionFalse:
		condition.Message += "; " + lookAt(outcome)
	}
	if len(outcome.Unwatched) > 0 {
		condition.Message += fmt.Sprintf("; the ServiceAccount may not list and watch %s: looked at every two minutes", excerpt.Of(outcome.Unwatched, maxPart))
	}
	return condition
}

// phaseConditions are Reconciling and Stalled, as far as they apply; those that do
// not are taken away. Work on another spec than before begins anew.
func phaseConditions(status *ocv1.ClusterExtensionStatus, p phase) []metav1.Condition {
	working := meta.FindStatusCondition(status.Conditions, ocv1.TypeReconciling)
	if !p.working || working != nil && working.ObservedGeneration != status.ObservedGeneration {
		meta.RemoveStatusCondition(&status.Conditions, ocv1.TypeReconciling)
	}
	if !p.stalled {
		meta.RemoveStatusCondition(&status.Conditions, ocv1.TypeStalled)
	}
	condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: p.reason, Message: p.message}
	switch {
	case p.working:
		condition.Type = ocv1.TypeReconciling
	case p.stalled:
		condition.Type = ocv1.TypeStalled
	default:
		return nil
	}
	return []metav1.Condition{condition}
}

// suspendedConditions is Suspended, if the extension is; otherwise it is taken away. Its time
// is the one that Ready tells of.
func suspendedConditions(status *ocv1.ClusterExtensionStatus, ext *ocv1.ClusterExtension, outcome Outcome) []metav1.Condition {
	if !ext.Spec.Suspend {
		meta.RemoveStatusCondition(&status.Conditions, ocv1.TypeSuspended)
		return nil
	}
	condition := metav1.Condition{Type: ocv1.TypeSuspended, Status: metav1.ConditionTrue, Reason: ocv1.ReasonUserRequested, Message: messageSuspended}
	if outcome.Suspended != nil {
		condition.LastTransitionTime = metav1.NewTime(outcome.Suspended.Since)
	}
	return []metav1.Condition{condition}
}

// terminating is the status of an extension that is being deleted and waits. Of what is
// installed it says how workloads are doing, as long as these are looked after.
func terminating(ext *ocv1.ClusterExtension, progress uninstallProgress, now time.Time) *ocv1.ClusterExtensionStatus {
	status := ext.Status.DeepCopy()
	status.ObservedGeneration = ext.Generation
	phase, other := ocv1.TypeReconciling, ocv1.TypeStalled
	if progress.reason == ocv1.ReasonDeletionBlocked {
		phase, other = other, phase
	}
	meta.RemoveStatusCondition(&status.Conditions, other)
	conditions := []metav1.Condition{
		{Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: progress.reason, Message: progress.text},
		{Type: phase, Status: metav1.ConditionTrue, Reason: progress.reason, Message: progress.text},
	}
	switch {
	case progress.available != nil:
		conditions = append(conditions, *progress.available)
	case meta.FindStatusCondition(status.Conditions, ocv1.TypeAvailable) != nil:
		conditions = append(conditions, unknown(ocv1.TypeAvailable, progress.reason, messageNotLookedAt))
	}
	for _, condition := range append(conditions, suspendedConditions(status, ext, Outcome{})...) {
		condition.Message = excerpt.Message(condition.Message)
		condition.ObservedGeneration, condition.LastTransitionTime = ext.Generation, metav1.NewTime(now.Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// stalledOf is the status of an extension that is being deleted and stays until somebody acts.
func stalledOf(status *ocv1.ClusterExtensionStatus) *ocv1.ClusterExtensionStatus {
	stalled := status.DeepCopy()
	if condition := meta.FindStatusCondition(status.Conditions, ocv1.TypeReconciling); condition != nil {
		stuck := *condition
		stuck.Type = ocv1.TypeStalled
		meta.RemoveStatusCondition(&stalled.Conditions, ocv1.TypeReconciling)
		meta.SetStatusCondition(&stalled.Conditions, stuck)
	}
	return stalled
}

const (
	messageDeprecationUnknown = "deprecation status unknown: catalog data unavailable"
	messageNoBundle           = "no bundle installed yet"
	messageNotLookedAt        = "being deleted: workloads are not looked at any more"
)

// deprecationConditions tell what the catalog that won says about the package,
// its channels and the installed bundle.
func deprecationConditions(ext *ocv1.ClusterExtension, outcome Outcome) []metav1.Condition {
	if outcome.Target.Resolution == nil {
		return unknownDeprecations(outcome)
	}
	declared := applicable(ext, outcome)
	ofPackage := messagesOf(declared, resolve.PackageScope)
	ofChannels := messagesOf(declared, resolve.ChannelScope)
	ofBundle := messagesOf(declared, resolve.BundleScope)
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

// applicable are the deprecations that are about the package, the channels of
// the spec or, if it names none, any channel, and the installed bundle. Those that
// say nothing are left out.
func applicable(ext *ocv1.ClusterExtension, outcome Outcome) []resolve.Deprecation {
	var channels []string
	if catalog := ext.Spec.Source.Catalog; catalog != nil {
		channels = catalog.Channels
	}
	return slices.DeleteFunc(slices.Clone(outcome.Target.Resolution.Deprecations), func(d resolve.Deprecation) bool {
		switch d.Scope {
		case resolve.PackageScope:
			return d.Message == ""
		case resolve.ChannelScope:
			return d.Message == "" || len(channels) > 0 && !slices.Contains(channels, d.Name)
		case resolve.BundleScope:
			return d.Message == "" || outcome.Installed == nil || d.Name != outcome.Installed.Bundle.Name
		}
		return true
	})
}

func messagesOf(declared []resolve.Deprecation, scope resolve.Scope) []string {
	var messages []string
	for _, d := range declared {
		if d.Scope == scope {
			messages = append(messages, d.Message)
		}
	}
	return messages
}
