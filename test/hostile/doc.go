// Package hostile holds tests in which somebody tries to bring down the controller, or to
// hold up others by it, while honest extensions are installed, upgraded and repaired.
package hostile
