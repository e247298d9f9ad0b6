package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// addEvents makes events reach the API server while the manager runs. Equal ones
// are counted instead of repeated, and many about one object are held back.
func addEvents(mgr ctrl.Manager, api kubernetes.Interface) (record.EventRecorder, error) {
	broadcaster := record.NewBroadcaster()
	recorder := broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: "operator-controller"})
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: api.CoreV1().Events("")})
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("setting up events: %w", err)
	}
	return recorder, nil
}
