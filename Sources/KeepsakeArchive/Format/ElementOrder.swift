import Foundation

/// Puts the elements of a set, or the keys of a dictionary, into the order of their bytes.
@usableFromInline final class ElementOrder {
  private struct Element: BitwiseCopyable {
    var start: Int
    var end: Int
    var index: Int
  }

  /// References met before, around these elements.
  let outerReferences: Int
  /// Without references: the bytes may be taken as they are.
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

  /// Elements are noted one after the other, each with the end of its bytes.
  @usableFromInline func note(_ index: Int, end: Int) {
    elements.initializeElement(at: index, to: Element(start: index == 0 ? 0 : elements[index - 1].end, end: end, index: index))
  }

  func sort(_ written: UnsafeRawBufferPointer, isPlain: Bool) {
    self.isPlain = isPlain
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(written.count, 1), alignment: 1)
    if let start = written.baseAddress { memory.copyMemory(from: start, byteCount: written.count) }
    copy = memory
    var elements = elements
    elements.sort { Self.precedes(memory, $0, $1) }
  }

  /// Byte by byte, unsigned, a prefix first.
  private static func precedes(_ memory: UnsafeMutableRawPointer, _ a: Element, _ b: Element) -> Bool {
    let (left, right) = (a.end &- a.start, b.end &- b.start)
    let order = memcmp(memory + a.start, memory + b.start, min(left, right))
    return order == 0 ? left < right : order < 0
  }

  @usableFromInline func index(_ place: Int) -> Int { elements[place].index }

  @usableFromInline func bytes(_ place: Int) -> UnsafeRawBufferPointer {
    let element = elements[place]
    return UnsafeRawBufferPointer(start: copy.map { UnsafeRawPointer($0) + element.start }, count: element.end - element.start)
  }
}
