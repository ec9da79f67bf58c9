import Foundation

@_silgen_name("__sanitizer_install_malloc_and_free_hooks")
private func installHooks(
  _ allocated: @convention(c) (UnsafeRawPointer?, Int) -> Void, _ freed: @convention(c) (UnsafeRawPointer?) -> Void
) -> Int32

@_silgen_name("__sanitizer_get_allocated_size")
private func allocatedSize(_ pointer: UnsafeRawPointer?) -> Int

/// How much memory lives at most while one input is read. What a small input may ask for is a promise of the reader;
/// the fuzzer's own limits only see what a whole process takes.
enum MemoryWatch {
  nonisolated(unsafe) private static var live = 0
  nonisolated(unsafe) private static var peak = 0

  static func install() {
    _ = installHooks(
      { _, size in
        MemoryWatch.live &+= size
        if MemoryWatch.live > MemoryWatch.peak { MemoryWatch.peak = MemoryWatch.live }
      },
      { pointer in
        if pointer != nil { MemoryWatch.live &-= allocatedSize(pointer) }
      })
  }

  /// Runs the body and gives the most bytes that lived at once in it beyond those that lived before.
  static func peak(_ body: () -> Void) -> Int {
    let before = live
    peak = before
    body()
    return peak - before
  }
}
