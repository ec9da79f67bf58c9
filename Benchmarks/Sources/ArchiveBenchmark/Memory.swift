import Foundation

/// The cheapest that there is: the same bytes copied into fresh memory.
enum Memory {
  static func copy(_ bytes: UnsafeRawBufferPointer) -> Data {
    guard let source = bytes.baseAddress, let target = malloc(bytes.count) else { return Data() }
    memcpy(target, source, bytes.count)
    return Data(bytesNoCopy: target, count: bytes.count, deallocator: .free)
  }

  static func copy(_ data: Data) -> Data { data.withUnsafeBytes { copy($0) } }
}
