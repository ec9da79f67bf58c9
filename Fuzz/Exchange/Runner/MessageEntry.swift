import Foundation

@_silgen_name("LLVMFuzzerMutate")
private func mutateBytes(_ data: UnsafeMutablePointer<UInt8>, _ count: Int, _ capacity: Int) -> Int

/// One binary for both forms; the environment says which.
private let form = ProcessInfo.processInfo.environment["FUZZ_TARGET"].flatMap { MessageCheck.Form(rawValue: $0) }
private let check = form.map { form in
  MessageCheck(
    form,
    scan: {
      // The limits of the server, ServerLimits.jsonTokens and jsonDepth.
      let scan = JSONScan($0, limit: 1 << 20, deepest: 64)
      return MessageCheck.Scan(
        isAdmitted: scan.tokens <= 1 << 20 && scan.depth <= 64, decodingBytes: scan.decodingBytes)
    }, measure: MemoryWatch.peak)
}

@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<Int32>?, _ arguments: UnsafeRawPointer?) -> Int32 {
  guard form != nil else {
    print("FUZZ_TARGET must be one of \(MessageCheck.Form.allCases.map(\.rawValue).joined(separator: ", "))")
    exit(2)
  }
  MemoryWatch.install()
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  do {
    _ = try check?.run(bytes.map { Data(bytes: $0, count: count) } ?? Data())
  } catch {
    fatalError("\(error)")
  }
  return 0
}

@_cdecl("LLVMFuzzerCustomMutator")
public func mutate(_ data: UnsafeMutablePointer<UInt8>, _ count: Int, _ capacity: Int, _ seed: UInt32) -> Int {
  alter(data, count, with: [], into: data, capacity, seed)
}

@_cdecl("LLVMFuzzerCustomCrossOver")
public func cross(
  _ data: UnsafePointer<UInt8>, _ count: Int, _ other: UnsafePointer<UInt8>, _ otherCount: Int,
  _ result: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ seed: UInt32
) -> Int {
  alter(
    data, count, with: Array(UnsafeBufferPointer(start: other, count: otherCount)), into: result, capacity, seed)
}

private func alter(
  _ data: UnsafePointer<UInt8>, _ count: Int, with other: [UInt8], into result: UnsafeMutablePointer<UInt8>,
  _ capacity: Int, _ seed: UInt32
) -> Int {
  guard let form else { return 0 }
  var mutator = MessageMutator(form, seed: UInt64(seed))
  let altered = mutator.altered(Array(UnsafeBufferPointer(start: data, count: count)), with: other) { bytes in
    // Room for what is inserted.
    var room = bytes + [UInt8](repeating: 0, count: 64)
    let length = room.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { mutateBytes($0, bytes.count, buffer.count) } ?? 0
    }
    return Array(room.prefix(length))
  }
  let kept = min(altered.count, capacity)
  for index in 0..<kept { result[index] = altered[index] }
  return kept
}
