import Foundation

/// A growing list of plain values, for what is recorded of every object or field.
///
/// It manages its own memory, so that appending is a single store: an array in a property of a class would be checked
/// for unique reference and exclusive access each time.
struct RawList<Element: BitwiseCopyable>: ~Copyable {
  private var start: UnsafeMutablePointer<Element>?
  private(set) var count = 0
  private var capacity = 0

  init() {}

  deinit { start?.deallocate() }

  var elements: UnsafeBufferPointer<Element> { UnsafeBufferPointer(start: start, count: count) }

  subscript(index: Int) -> Element {
    @inline(__always) get {
      assert(index >= 0 && index < count)
      return start.unsafelyUnwrapped[index]
    }
    @inline(__always) nonmutating set {
      assert(index >= 0 && index < count)
      start.unsafelyUnwrapped[index] = newValue
    }
  }

  @inline(__always) mutating func append(_ element: Element) {
    if count == capacity { grow(to: max(64, capacity * 2)) }
    start.unsafelyUnwrapped[count] = element
    count &+= 1
  }

  /// Appends elements that the caller must set before anything reads them, and returns a pointer to the first. Valid
  /// until the next change.
  @inline(__always) mutating func extend(by more: Int) -> UnsafeMutablePointer<Element> {
    if count + more > capacity { grow(to: max(64, capacity * 2, count + more)) }
    defer { count &+= more }
    return start.unsafelyUnwrapped + count
  }

  /// Returns a pointer to an element. Valid until the next change.
  @inline(__always) func place(_ index: Int) -> UnsafeMutablePointer<Element> {
    assert(index >= 0 && index <= count)
    return start.unsafelyUnwrapped + index
  }

  mutating func truncate(to count: Int) { self.count = min(count, self.count) }

  var byteCount: Int { capacity * MemoryLayout<Element>.stride }

  /// Empties the list, but keeps its memory.
  mutating func removeAll() { count = 0 }

  private mutating func grow(to wanted: Int) {
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: wanted)
    if let start {
      larger.update(from: start, count: count)
      start.deallocate()
    }
    start = larger
    capacity = wanted
  }
}
