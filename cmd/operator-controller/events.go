package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// events reach the API server while they run, on every replica. Equal ones are counted
// instead of repeated, and many about one object are held back.
type events struct {
	recorder record.EventRecorder

	broadcaster record.EventBroadcaster
	api         kubernetes.Interface
}

var _ manager.LeaderElectionRunnable = &events{}

func newEvents(scheme *runtime.Scheme, api kubernetes.Interface) *events {
	broadcaster := record.NewBroadcaster()
	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "operator-controller"})
	return &events{recorder: recorder, broadcaster: broadcaster, api: api}
}

// Start implements [manager.Runnable].
func (e *events) Start(ctx context.Context) error {
	e.broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: e.api.CoreV1().Events("")})
	<-ctx.Done()
	return nil
}

// close drops what has not been sent.
func (e *events) close() { e.broadcaster.Shutdown() }

// NeedLeaderElection implements [manager.LeaderElectionRunnable]: that a replica leads is an
// event, too.
func (*events) NeedLeaderElection() bool { return false }

// leaseEvents tell who leads, as long as anything is sent.
type leaseEvents struct {
	record.EventRecorder

	gate *gate
}

var _ resourcelock.EventRecorder = leaseEvents{}

// Eventf implements [resourcelock.EventRecorder].
func (e leaseEvents) Eventf(about runtime.Object, kind, reason, format string, args ...any) {
	if !e.gate.closed.Load() {
		e.EventRecorder.Eventf(about, kind, reason, format, args...)
	}
}
