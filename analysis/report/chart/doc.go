// Package chart draws small figures as SVG: lines with bands and error bars, stacked columns, and
// bars.
//
// Colours are not in the picture: a mark of series i has the class s<i>, and the page's style says
// what that looks like in the light and in the dark. All text is escaped. Equal charts give equal
// bytes.
package chart
