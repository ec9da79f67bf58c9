/// A text that equals another only if their bytes are equal.
///
/// Swift considers two encodings of a letter equal. In a file they are different: if both were written once, one would
/// be read back as the other.
package struct ExactText: Hashable {
  package let text: String

  package init(_ text: String) { self.text = text }

  package static func == (a: ExactText, b: ExactText) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  package func hash(into hasher: inout Hasher) {
    // Text in contiguous storage, as nearly all text is, is hashed in one step.
    let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    if isHashed == nil { Array(text.utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}
