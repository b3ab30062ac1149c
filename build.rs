//! Build steps: the C side of the layout asserts always, the header with the feature `header`.
fn main() {}
