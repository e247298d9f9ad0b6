package main

import (
	"fmt"
	"net/http"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// addReadiness makes the process ready only while check says nothing against it.
func addReadiness(mgr ctrl.Manager, name string, check healthz.Checker) error {
	if err := mgr.AddReadyzCheck(name, logChanges(name, check)); err != nil {
		return fmt.Errorf("setting up readiness: %w", err)
	}
	return nil
}

// logChanges logs each change of what check says. That a process which has just been
// started is not ready is not logged.
func logChanges(name string, check healthz.Checker) healthz.Checker {
	var (
		mu    sync.Mutex
		ready bool
	)
	return func(request *http.Request) error {
		err := check(request)
		mu.Lock()
		defer mu.Unlock()
		logger := ctrl.Log.WithValues("check", name)
		switch was := ready; {
		case err == nil && !was:
			logger.Info("ready")
		case err != nil && was:
			logger.Info("no longer ready", "reason", err.Error())
		case err != nil:
			logger.V(1).Info("not ready", "reason", err.Error())
		}
		ready = err == nil
		return err
	}
}
