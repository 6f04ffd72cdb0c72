package main

const maxrssUnit = 1 // bytes
