// want source

//go:build never

package rules
