// Package apiservice is what tests need to have the API server of a local cluster leave an
// API to somebody else: a server that answers discovery and requests for objects, which
// reads its certificate as a pod would, and a way to say that it is there. [webhook.Services]
// leads to it.
package apiservice
