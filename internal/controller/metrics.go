package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const (
	metricsNamespace = "operator_controller"

	labelExtension = "extension"
	labelVersion   = "version"
	labelType      = "type"
	labelStage     = "stage"
	labelOutcome   = "outcome"
	labelOperation = "operation"
)

// Metrics say how extensions are doing. Series of an extension go with it; their
// other labels have few values, whatever anybody writes into a spec or a bundle.
type Metrics struct {
	installed  *prometheus.GaugeVec
	sizes      *prometheus.GaugeVec
	conditions *conditionGauges
	passes     *prometheus.CounterVec
	repairs    *prometheus.CounterVec
	operations *prometheus.CounterVec
	warnings   *prometheus.CounterVec
	pending    *prometheus.GaugeVec
	held       *prometheus.GaugeVec
	expiration *prometheus.GaugeVec
	signatures *verdictGauges
	durations  *prometheus.HistogramVec

	mu sync.Mutex

	// versions are those that are told to be installed, by extension.
	versions map[string]string
}

// NewMetrics registers the metrics. It fails when they are registered already.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		installed: gauge("extension_installed_info",
			"The version that is installed; always 1.", labelExtension, labelVersion),
		sizes: gauge("extension_release_bytes",
			"The size of the release record of what is installed, compressed as it is stored.", labelExtension),
		conditions: newConditionGauges("extension_condition",
			"Conditions of extensions: 1 for True, 0 for False or absent, -1 for Unknown.", labelExtension,
			slices.Concat(ocv1.ClusterExtensionConditionTypes(), ocv1.ClusterExtensionPassingConditionTypes())),
		passes: counter("extension_passes_total",
			"Passes over an extension by how they ended and, unless all was as wanted, at which stage.",
			labelExtension, labelOutcome, labelStage),
		repairs: counter("extension_repairs_total",
			"Objects that were put back, or changed back, after somebody else had changed them.", labelExtension),
		operations: counter("extension_operations_total",
			"Installs and upgrades that were completed.", labelExtension, labelOperation),
		warnings: counter("extension_warnings_total",
			"Warnings of the API server about objects that were written.", labelExtension),
		pending: gauge("extension_approval_pending",
			"1 while an upgrade waits for somebody to approve it, or else 0.", labelExtension),
		held: gauge("extension_upgrade_held",
			"1 while an upgrade is held because the installed operator says that it cannot be upgraded.", labelExtension),
		expiration: gauge("extension_certificate_expiration_timestamp_seconds",
			"When the first of the certificates ends that the controller has issued to webhooks of the extension.", labelExtension),
		signatures: newVerdictGauges("extension_image_verdict",
			"What ImagePolicies make of the image of what is installed; always 1.", labelExtension),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace,
			Name:      "stage_duration_seconds",
			Help:      "How long the stages of passes took.",
			Buckets:   prometheus.ExponentialBuckets(0.001, 4, 10), // up to four minutes
		}, []string{labelStage}),
		versions: map[string]string{},
	}
	errs := []error{registry.Register(m.durations)}
	for _, vector := range m.ofExtensions() {
		errs = append(errs, registry.Register(vector))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: metricsNamespace, Name: name, Help: help}, labels)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metricsNamespace, Name: name, Help: help}, labels)
}

// ofExtensions are the metrics that have series of each extension.
func (m *Metrics) ofExtensions() []vector {
	return []vector{m.installed, m.sizes, m.conditions, m.passes, m.repairs, m.operations, m.warnings, m.pending, m.held, m.expiration, m.signatures}
}

type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
	Reset()
}

// Reset drops what is told of all extensions, for when another process acts.
func (m *Metrics) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, vector := range m.ofExtensions() {
		vector.Reset()
	}
	clear(m.versions)
}

// passed is for the end of a pass, when the status is written.
func (m *Metrics) passed(extension string, outcome Outcome, v verdict, status *ocv1.ClusterExtensionStatus) {
	m.passes.WithLabelValues(extension, strings.ToLower(string(v.disposition)), string(outcome.Stage)).Inc()
	m.setVersion(extension, status.Install)
	if outcome.ReleaseBytes > 0 { // a pass that fails does not know
		m.sizes.WithLabelValues(extension).Set(float64(outcome.ReleaseBytes))
		m.setExpiration(extension, outcome.CertificatesEnd)
	}
	m.pending.WithLabelValues(extension).Set(truth(outcome.Pending != nil))
	setOrDelete(m.held, extension, truth(outcome.Veto != nil)) // few operators ever object
	m.signatures.set(extension, verdictLabel(outcome.Signatures))
	m.conditions.set(extension, status.Conditions)
}

// truth is 1 for what is so.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// worked is for each pass, whether or not it comes to a status. Counters are there before
// there is anything to count: the first increase is not seen of one that begins with it.
func (m *Metrics) worked(extension string, outcome Outcome) {
	m.repairs.WithLabelValues(extension).Add(float64(len(outcome.Repair.Repaired())))
	warnings := len(outcome.Repair.Warnings)
	for _, action := range []Action{Install, Upgrade} {
		completed := 0.0
		if outcome.Applied != nil && outcome.Err == nil && outcome.Target.Action == action {
			completed, warnings = 1, warnings+len(outcome.Applied.Warnings)
		}
		m.operations.WithLabelValues(extension, strings.ToLower(string(action))).Add(completed)
	}
	m.warnings.WithLabelValues(extension).Add(float64(warnings))
}

// setExpiration leaves no series where there is no certificate.
func (m *Metrics) setExpiration(extension string, end time.Time) {
	seconds := 0.0
	if !end.IsZero() {
		seconds = float64(end.Unix())
	}
	setOrDelete(m.expiration, extension, seconds)
}

// setVersion leaves one series at most.
func (m *Metrics) setVersion(extension string, install *ocv1.ClusterExtensionInstallStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.versions[extension]; ok && (install == nil || install.Bundle.Version != known) {
		m.installed.DeleteLabelValues(extension, known)
		delete(m.versions, extension)
	}
	if install != nil {
		m.installed.WithLabelValues(extension, install.Bundle.Version).Set(1)
		m.versions[extension] = install.Bundle.Version
	}
}

func (m *Metrics) took(stage Stage, duration time.Duration) {
	m.durations.WithLabelValues(string(stage)).Observe(duration.Seconds())
}

// forget drops the series of an extension that is gone.
func (m *Metrics) forget(extension string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.versions, extension)
	for _, vector := range m.ofExtensions() {
		vector.DeletePartialMatch(prometheus.Labels{labelExtension: extension})
	}
}
