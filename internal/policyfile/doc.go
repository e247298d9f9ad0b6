// Package policyfile reads ImagePolicies from a file, without a cluster: its objects -> the
// policies, ready to judge by with the Secrets that are there too, and what is wrong with them.
package policyfile
