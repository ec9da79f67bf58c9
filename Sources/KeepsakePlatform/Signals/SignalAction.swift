#if !os(Windows)
/// What the process does at a signal, by the system's `sigaction`.
package enum SignalAction {
  package typealias Handler =
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void

  package static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    #if canImport(Darwin)
    let handler = action.__sigaction_u.__sa_handler
    #elseif canImport(Musl)
    let handler = action.__sa_handler.sa_handler
    #elseif canImport(Android)
    let handler = action.sa_handler
    #else
    let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Installs a handler that is told who sent the signal. Calls that the signal interrupts go on afterwards.
  package static func install(_ handler: @escaping Handler, for number: Int32) {
    var action = sigaction()
    #if canImport(Darwin)
    action.__sigaction_u.__sa_sigaction = handler
    #elseif canImport(Musl)
    action.__sa_handler.sa_sigaction = handler
    #elseif canImport(Android)
    action.sa_sigaction = handler
    #else
    action.__sigaction_handler.sa_sigaction = handler
    #endif
    action.sa_flags = SA_SIGINFO | Int32(SA_RESTART)
    sigemptyset(&action.sa_mask)
    sigaction(number, &action, nil)
  }

  /// Whether the system itself sent a signal, as a terminal does, and not a program. For use in a handler.
  package static func isOfSystem(_ info: UnsafeMutablePointer<siginfo_t>?) -> Bool {
    #if canImport(Darwin)
    info?.pointee.si_pid == 0
    #else
    // SI_USER and what else a program sends are not above 0.
    (info?.pointee.si_code ?? 0) > 0
    #endif
  }
}
#endif
