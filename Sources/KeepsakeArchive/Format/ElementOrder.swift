import Foundation

/// Sorts the elements of a set, or the keys of a dictionary, by their bytes.
@usableFromInline final class ElementOrder {
  private struct Element: BitwiseCopyable {
    var start: Int
    var end: Int
    var index: Int
  }

  /// The number of references found before, outside these elements.
  let outerReferences: Int
  /// Whether the elements have no references, so that their bytes can be used unchanged.
  @usableFromInline private(set) var isPlain = true
  private let elements: UnsafeMutableBufferPointer<Element>
  private var copy: UnsafeMutableRawPointer?

  @usableFromInline init(count: Int, outerReferences: Int) {
    self.outerReferences = outerReferences
    elements = .allocate(capacity: count)
  }

  deinit {
    elements.deallocate()
    copy?.deallocate()
  }

  /// Records an element with the end of its bytes. Called for each element in the order of writing.
  @usableFromInline func note(_ index: Int, end: Int) {
    elements.initializeElement(
      at: index, to: Element(start: index == 0 ? 0 : elements[index - 1].end, end: end, index: index))
  }

  func sort(_ written: UnsafeRawBufferPointer, isPlain: Bool) {
    self.isPlain = isPlain
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(written.count, 1), alignment: 1)
    if let start = written.baseAddress { memory.copyMemory(from: start, byteCount: written.count) }
    copy = memory
    var elements = elements
    elements.sort { Self.precedes(memory, $0, $1) }
  }

  /// Compares byte by byte, unsigned; a prefix comes first.
  private static func precedes(_ memory: UnsafeMutableRawPointer, _ a: Element, _ b: Element) -> Bool {
    let (left, right) = (a.end &- a.start, b.end &- b.start)
    let order = memcmp(memory + a.start, memory + b.start, min(left, right))
    return order == 0 ? left < right : order < 0
  }

  @usableFromInline func index(_ place: Int) -> Int { elements[place].index }

  @usableFromInline func bytes(_ place: Int) -> UnsafeRawBufferPointer {
    let element = elements[place]
    return UnsafeRawBufferPointer(
      start: copy.map { UnsafeRawPointer($0) + element.start }, count: element.end - element.start)
  }
}
