// Package brand reads what an operator says of the looks of a room's waiting
// page, checks it, and keeps it readable: whatever the accent is, text in it has
// the contrast that WCAG 2.2 asks for at level AA, on light pages and on dark.
package brand
