// Package verifydraw tests the script that checks the draw of an event. It is
// for visitors, and needs nothing but Python.
package verifydraw
